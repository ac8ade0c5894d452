package files

import (
	"os"

	"golang.org/x/sys/unix"
)

// writeBack starts to send a file's bytes to the disk, so that reads go on meanwhile and a sync at the end is short.
func writeBack(f *os.File) {
	unix.SyncFileRange(int(f.Fd()), 0, 0, unix.SYNC_FILE_RANGE_WRITE)
}
