// Command rna trains neural networks with SGD and Regularized Nonlinear Acceleration.
//
// Run "rna help" for its commands.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"onlinerna/internal/terminal"
	"onlinerna/train/ranks/mpi"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), stopSignals()...)
	go func() {
		<-ctx.Done()
		stop() // a second Ctrl-C ends the program at once
		time.Sleep(2 * time.Second)
		fmt.Fprintln(os.Stderr, "\nstopping when what is in progress is done; Ctrl-C again ends at once")
	}()
	mpi.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run executes a command line and returns the exit status: 0, 1 for an error, 2 for wrong usage, 130 when
// interrupted.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	var u *usageError
	switch {
	case err == nil:
		return 0
	case err == errQuiet:
		return 1
	case errors.Is(err, errStopped):
		// What stopped is known; what went wrong beside is not.
		if rest := strings.TrimSpace(strings.TrimPrefix(err.Error(), errStopped.Error())); rest != "" {
			say(stderr, rest)
		}
		return 130
	}
	say(stderr, err.Error())
	if errors.As(err, &u) {
		fmt.Fprintf(stderr, "Run '%s --help' for its usage.\n", u.command)
		return 2
	}
	return 1
}

// say prints an error.
func say(stderr io.Writer, err string) {
	fmt.Fprintln(stderr, terminal.Wrap(stderr, terminal.StyleOf(stderr).Error("rna:")+" "+err, "  "))
}
