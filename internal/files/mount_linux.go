package files

import "golang.org/x/sys/unix"

// IsMount reports whether a folder is a mount point, which no rename can replace. Linux before 5.8 does not tell those
// of the same file system.
func IsMount(dir string) bool {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, dir, unix.AT_NO_AUTOMOUNT, unix.STATX_INO, &st)
	if err == nil && st.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT != 0 {
		return st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
	}
	return otherDevice(dir)
}
