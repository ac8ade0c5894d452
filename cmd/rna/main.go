// Command rna trains neural networks with SGD and Regularized Nonlinear Acceleration.
//
// Run "rna help" for its commands.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"onlinerna/internal/cli"
	"onlinerna/train/ranks/mpi"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), cli.StopSignals()...)
	go func() {
		<-ctx.Done()
		stop() // a second Ctrl-C ends the program at once
		time.Sleep(2 * time.Second)
		fmt.Fprintln(os.Stderr, "\nstopping when what is in progress is done; Ctrl-C again ends at once")
	}()
	mpi.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run executes a command line and returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return cli.Run(ctx, newRoot(), args, stdout, stderr)
}
