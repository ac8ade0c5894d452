//go:build unix

package cli

import (
	"os"
	"os/signal"
	"syscall"
)

// StopSignals end a command as Ctrl-C does: the signals of schedulers before preemption (SIGTERM, SIGUSR1), and the
// hang-up of a terminal, unless nohup made it ignored.
func StopSignals() []os.Signal {
	list := []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGUSR1}
	if !signal.Ignored(syscall.SIGHUP) {
		list = append(list, syscall.SIGHUP)
	}
	return list
}

// outliveReaders makes writes to a closed standard output fail instead of ending the process.
func outliveReaders() { signal.Ignore(syscall.SIGPIPE) }
