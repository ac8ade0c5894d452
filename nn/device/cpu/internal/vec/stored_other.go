//go:build !amd64 || purego

package vec

var storedKernels *Stored
