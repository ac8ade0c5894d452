//go:build unix

package fetch

import "golang.org/x/sys/unix"

// syncAll syncs all written files at once: thousands of small files take long one by one.
func syncAll() { unix.Sync() }
