//go:build (!amd64 && !arm64) || purego

package simd

func detect() []Level { return []Level{Go} }

const hasBFloat16, fastBFloat16 = false, false
