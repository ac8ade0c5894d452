//go:build !unix

package main

import (
	"os"
	"syscall"
)

// stopSignals end a command as Ctrl-C does.
func stopSignals() []os.Signal { return []os.Signal{os.Interrupt, syscall.SIGTERM} }

// outliveReaders has nothing to do here: writes to a closed standard output fail.
func outliveReaders() {}
