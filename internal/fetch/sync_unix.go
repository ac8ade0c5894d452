//go:build unix

package fetch

import "golang.org/x/sys/unix"

// syncAll brings what was written to disk, at once: thousands of small files take long one by one.
func syncAll() { unix.Sync() }
