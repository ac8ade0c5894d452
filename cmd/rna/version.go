package main

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"

	"onlinerna/cmd/internal/cli"
)

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

// build describes the source of this program.
func build() cli.Build {
	info, _ := debug.ReadBuildInfo()
	return cli.BuiltFrom(info)
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
