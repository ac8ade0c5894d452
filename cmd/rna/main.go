// Command rna trains neural networks with SGD and Regularized Nonlinear Acceleration.
//
// Run "rna help" for its commands.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(run(os.Args[1:])) }

// run executes the command line and returns the exit status: 0, 1 for an error, 2 for wrong usage, 130 when
// interrupted.
func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	go func() {
		<-ctx.Done()
		stop() // a second Ctrl-C ends the program at once
	}()
	root := newRoot()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, "rna: "+err.Error())
	var u *usageError
	switch {
	case errors.As(err, &u):
		fmt.Fprintf(os.Stderr, "Run '%s --help' for its usage.\n", u.command)
		return 2
	case errors.Is(err, errStopped):
		return 130
	}
	return 1
}
