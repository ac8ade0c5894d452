//go:build arm64 && !purego

package simd

func detect() []Level { return []Level{Go, NEON} }

const hasBFloat16, fastBFloat16 = false, false
