//go:build !amd64 || purego

package level

func detect() Level { return Go }
