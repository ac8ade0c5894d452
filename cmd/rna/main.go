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

	"github.com/spf13/cobra"

	"onlinerna/cmd/internal/cli"
	"onlinerna/train/ranks/mpi"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), cli.StopSignals()...)
	go func() {
		<-ctx.Done()
		stop() // a second Ctrl-C ends the program at once
		time.Sleep(2 * time.Second)
		fmt.Fprintln(os.Stderr, "\nstopping after the work in progress; Ctrl-C again ends at once")
	}()
	mpi.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run executes a command line and returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return cli.Run(ctx, newRoot(), args, stdout, stderr)
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "rna",
		Short: "Train neural networks with SGD and Regularized Nonlinear Acceleration",
		Long: `rna trains neural networks with SGD and Regularized Nonlinear Acceleration (RNA): it keeps the weights
of the last epochs and extrapolates them, beside training or put back into it.

"rna train" without any option trains a small net on generated images in about a minute.`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.Version = build().String()
	root.SetVersionTemplate("{{.Version}}")
	root.SetHelpFunc(cli.Help)
	root.SetUsageFunc(cli.UsageOf)
	root.AddCommand(newTrain(), newStudy(), newSweep(), newLRFind(), newEval(), newPredict(), newReplay(), newRuns(),
		newCompare(), newLogreg(),
		newBench(), newData(), newGet(), newMerge(), newExtrapolate(), newInspect(),
		newConvert(), newExport(), newVerify(), newModels(), newOptions(), newDevices(), newVersion(), newMan())
	root.PersistentPreRunE = cli.Guard
	root.SetFlagErrorFunc(cli.FlagError)
	root.Args = cli.UnknownCommand
	root.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cli.CompleteAll(root)
	return root
}
