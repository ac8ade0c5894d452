package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version and what it was built with",
		Args:  noArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprint(cmd.OutOrStdout(), versionLine())
		},
	}
}

// versionLine is what the command says.
func versionLine() string {
	var b strings.Builder
	version, revision := "(devel)", ""
	deps := map[string]string{}
	if info, ok := debug.ReadBuildInfo(); ok {
		version = info.Main.Version
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = " " + s.Value
			}
		}
		for _, d := range info.Deps {
			deps[d.Path] = d.Version
		}
	}
	w := &b
	fmt.Fprintf(w, "rna %s%s\n%s %s/%s, %d CPUs\n", version, revision, runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	for _, p := range []string{"gorgonia.org/gorgonia", "gorgonia.org/tensor", "gonum.org/v1/gonum"} {
		fmt.Fprintf(w, "%s %s\n", p, deps[p])
	}
	return b.String()
}
