package cli

import (
	"errors"
	"io"
	"os"
	"sync/atomic"
	"syscall"

	"github.com/spf13/cobra"
)

// steady passes on writes until the reader is gone, which is no error for a run: its results are in its folder.
type steady struct {
	io.Writer
	gone *atomic.Bool
}

func newSteady(w io.Writer) io.Writer { return steady{w, new(atomic.Bool)} }

// Unwrap is the writer below, which may be a terminal.
func (s steady) Unwrap() io.Writer { return s.Writer }

func (s steady) Write(b []byte) (int, error) {
	if s.gone.Load() {
		return len(b), nil
	}
	n, err := s.Writer.Write(b)
	// a pipe's end, a terminal that hung up
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed) || errors.Is(err, syscall.EIO) {
		s.gone.Store(true)
		return len(b), nil
	}
	return n, err
}

// SteadyOutputs are the standard output and the standard error of a command that goes on when nobody reads them.
func SteadyOutputs(cmd *cobra.Command) (out, log io.Writer) {
	outliveReaders()
	return newSteady(cmd.OutOrStdout()), newSteady(cmd.ErrOrStderr())
}
