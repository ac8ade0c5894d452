//go:build unix

package terminal

import (
	"os"
	"os/signal"
	"syscall"
)

// Resized notifies c when the size of the terminal changes.
func Resized(c chan<- os.Signal) { signal.Notify(c, syscall.SIGWINCH) }
