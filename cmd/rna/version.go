package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"onlinerna/internal/simd"
)

func newVersion() *cobra.Command {
	var verbose bool
	cmd := &cobra.Command{
		Use:   "version [options]",
		Short: "Print the version and the commit it was built from",
		Args:  noArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			info, _ := debug.ReadBuildInfo()
			b := builtFrom(info)
			fmt.Fprint(cmd.OutOrStdout(), b)
			if verbose {
				fmt.Fprint(cmd.OutOrStdout(), b.more(info))
			}
		},
	}
	o := newGroup("Options")
	o.BoolVarP(&verbose, "verbose", "v", false, "also the settings of the build, the processor and the versions of all modules")
	o.BoolP("help", "h", false, "this help")
	addGroups(cmd, o)
	return cmd
}

// versionLine is what --version prints.
func versionLine() string {
	info, _ := debug.ReadBuildInfo()
	return builtFrom(info).String()
}

// A build is what the program was built from.
type build struct {
	version, commit, time, tags string
	modified                    bool
}

func builtFrom(info *debug.BuildInfo) (b build) {
	if info == nil {
		return b
	}
	b.version = info.Main.Version
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.commit = s.Value
		case "vcs.time":
			b.time = s.Value
		case "vcs.modified":
			b.modified = s.Value == "true"
		case "-tags":
			b.tags = s.Value
		}
	}
	return b
}

// String is a line with the version and the commit, and one with the platform.
func (b build) String() string {
	if b.version == "" {
		b.version = "(devel)"
	}
	commit := "unknown commit"
	if b.commit != "" {
		commit = "commit " + b.commit[:min(12, len(b.commit))]
		if day, _, ok := strings.Cut(b.time, "T"); ok {
			commit += " of " + day
		}
		if b.modified {
			commit += ", with changes"
		}
	}
	tags := ""
	if b.tags != "" {
		tags = ", tags " + b.tags
	}
	return fmt.Sprintf("rna %s, %s\n%s %s/%s%s\n", b.version, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH, tags)
}

// more lists the processor, the settings of the build and the modules.
func (b build) more(info *debug.BuildInfo) string {
	var s strings.Builder
	fmt.Fprintf(&s, "%d CPUs, kernels for %s\n", runtime.NumCPU(), simd.Default().Vectors())
	if info == nil {
		return s.String()
	}
	for _, x := range info.Settings {
		if x.Value != "" {
			fmt.Fprintf(&s, "%s=%s\n", x.Key, x.Value)
		}
	}
	for _, d := range info.Deps {
		fmt.Fprintf(&s, "%s %s\n", d.Path, d.Version)
	}
	return s.String()
}
