package terminal

import (
	"os"

	"golang.org/x/sys/windows"
)

// enable makes a console interpret escape sequences, if it can.
func enable(f *os.File) bool {
	var mode uint32
	h := windows.Handle(f.Fd())
	return windows.GetConsoleMode(h, &mode) == nil &&
		windows.SetConsoleMode(h, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) == nil
}
