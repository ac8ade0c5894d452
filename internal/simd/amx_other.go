//go:build !linux || !amd64 || purego

package simd

func detectAMX() error { return errNoAMX }
