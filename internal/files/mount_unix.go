//go:build unix && !linux

package files

// IsMount reports whether a folder is a mount point, which no rename can replace.
func IsMount(dir string) bool { return otherDevice(dir) }
