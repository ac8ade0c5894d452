//go:build !amd64 || purego

package kernel

var sets = [...]set{Go: plain}

func detect() Level { return Go }
