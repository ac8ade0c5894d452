//go:build !amd64 || purego

package kern

func detect() int { return plainGo }

var sets = [...]Set{plain}
