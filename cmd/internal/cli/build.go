package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"onlinerna/internal/simd"
)

// Build is the source that the program was built from.
type Build struct {
	Version, Commit, Time, Tags string
	Modified                    bool
}

// BuiltFrom reads the build information, which may be nil.
func BuiltFrom(info *debug.BuildInfo) (b Build) {
	if info == nil {
		return b
	}
	b.Version = info.Main.Version
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		case "-tags":
			b.Tags = s.Value
		}
	}
	return b
}

// String is a line with the version and the commit, and one with the platform.
func (b Build) String() string {
	if b.Version == "" {
		b.Version = "(devel)"
	}
	commit := "unknown commit"
	if b.Commit != "" {
		commit = "commit " + b.Commit[:min(12, len(b.Commit))]
		if day, _, ok := strings.Cut(b.Time, "T"); ok {
			commit += " of " + day
		}
		if b.Modified {
			commit += ", with changes"
		}
	}
	tags := ""
	if b.Tags != "" {
		tags = ", tags " + b.Tags
	}
	return fmt.Sprintf("rna %s, %s\n%s %s/%s%s\n", b.Version, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH,
		tags)
}

// More lists the processor, the settings of the build and the modules.
func (b Build) More(info *debug.BuildInfo) string {
	var s strings.Builder
	fmt.Fprintf(&s, "%d CPUs, kernels for %s\n", runtime.NumCPU(), simd.Summary())
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
