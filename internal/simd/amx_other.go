//go:build !linux || !amd64 || purego

package simd

import "errors"

func detectAMX() error { return errors.New("AMX needs Linux on amd64") }
