//go:build (!amd64 && !arm64) || purego

package level

func detect() []Level { return []Level{Go} }

const hasBFloat16, fastBFloat16 = false, false
