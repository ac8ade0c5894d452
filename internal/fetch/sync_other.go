//go:build !unix

package fetch

// syncAll does nothing where the system has no such call.
func syncAll() {}
