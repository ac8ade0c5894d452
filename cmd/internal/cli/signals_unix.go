//go:build unix

package cli

import (
	"os"
	"os/signal"
	"syscall"
)

// StopSignals end a command as Ctrl-C does: those of schedulers before they preempt (SIGTERM, SIGUSR1), and of a
// terminal that hangs up, unless nohup has it ignored.
func StopSignals() []os.Signal {
	list := []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGUSR1}
	if !signal.Ignored(syscall.SIGHUP) {
		list = append(list, syscall.SIGHUP)
	}
	return list
}

// outliveReaders lets writes to a closed standard output fail, in place of ending the process.
func outliveReaders() { signal.Ignore(syscall.SIGPIPE) }
