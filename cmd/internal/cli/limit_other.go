//go:build !linux

package cli

// WithinLimit does nothing here: the address space is not limited.
func WithinLimit() (status int, done bool) { return 0, false }
