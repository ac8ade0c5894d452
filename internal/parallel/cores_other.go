//go:build !arm64 || (!darwin && !linux)

package parallel

// fastCores is 0: all cores count.
func fastCores() int { return 0 }
