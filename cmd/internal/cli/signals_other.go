//go:build !unix

package cli

import (
	"os"
	"syscall"
)

// StopSignals end a command as Ctrl-C does.
func StopSignals() []os.Signal { return []os.Signal{os.Interrupt, syscall.SIGTERM} }

// outliveReaders has nothing to do here: writes to a closed standard output fail.
func outliveReaders() {}
