// Command rna trains neural networks with SGD and Regularized Nonlinear Acceleration.
//
// Run "rna help" for its commands.
package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"onlinerna/cmd/internal/cli"
	"onlinerna/train/ranks/mpi"
)

func main() {
	if status, done := cli.WithinLimit(); done {
		os.Exit(status)
	}
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
	root.AddCommand(newTrain(), newStudy(), newSweep(), newLRFind(), newEval(), newPredict(), newServe(), newReplay(),
		newRuns(), newCompare(), newReport(), newWatch(), newExportMetrics(), newLogreg(), newBench(), newData(),
		newGet(), newMerge(), newExtrapolate(), newInspect(),
		newConvert(), newExport(), newVerify(), newModels(), newOptions(), newDevices(), newPlans(), newVersion(), newMan())
	root.PersistentPreRunE = cli.Guard
	root.SetFlagErrorFunc(cli.FlagError)
	root.Args = cli.UnknownCommand
	root.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cli.CompleteAll(root)
	return root
}

func newVersion() *cobra.Command {
	var verbose bool
	cmd := &cobra.Command{
		Use:   "version [options]",
		Short: "Print the version and the commit it was built from",
		Args:  cli.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprint(cmd.OutOrStdout(), build())
			if verbose {
				info, _ := debug.ReadBuildInfo()
				fmt.Fprint(cmd.OutOrStdout(), build().More(info))
			}
		},
	}
	o := cli.NewGroup("Options")
	o.BoolVarP(&verbose, "verbose", "v", false,
		"also the settings of the build, the processor and the versions of all modules")
	cli.AddGroups(cmd, o)
	return cmd
}

// The version and the commit of a release, set by the linker.
var version, commit string

// build describes the source of this program.
func build() cli.Build {
	info, _ := debug.ReadBuildInfo()
	b := cli.BuiltFrom(info)
	b.Version, b.Commit = cmp.Or(version, b.Version), cmp.Or(commit, b.Commit)
	return b
}

func newMan() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "man DIR",
		Short: "Write manual pages",
		Long: `Write a manual page of each command, rna.1, rna-train.1 and so on, into the folder DIR, which is created if
needed. man finds the pages in a folder man1 below one that MANPATH or /etc/manpath.config names.`,
		Example: `  rna man ~/.local/share/man/man1
  man rna-train`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Usage(cmd, fmt.Errorf("%d arguments: want the folder for the pages", len(args)))
			}
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := cli.ManPages(cmd.Root(), args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %d pages\n", args[0], n)
			return err
		},
	}
	cli.AddGroups(cmd)
	return cmd
}
