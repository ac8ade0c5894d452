//go:build !gpu

package lazy

// Built reports whether the build has the trampolines.
const Built = false
