//go:build !darwin && !dragonfly && !freebsd && !linux && !netbsd && !openbsd

package files

import (
	"os"
	"runtime"
)

func lock(*os.File) bool { return true }

func hold(*os.File) (release func()) { return func() {} }

// removeUnlocked removes a file on Windows, which refuses that for an open one. Folders with files in them stay: there
// nothing tells those of living processes from others before a file in them is gone.
func removeUnlocked(name string) error {
	if runtime.GOOS == "windows" {
		os.Remove(name)
	}
	return nil
}
