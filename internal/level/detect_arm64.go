//go:build arm64 && !purego

package level

func detect() []Level { return []Level{Go, NEON} }

const hasBFloat16, fastBFloat16 = false, false
