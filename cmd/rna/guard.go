package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// Options that name what is read, and what is written, in every command that has them.
var (
	reads  = []string{"weights", "init", "data", "val-data", "eval", "classes", "config", "y0"}
	writes = []string{"out", "json", "csv", "plot", "predictions", "confusion", "worst"}
)

// guard is an error if a command would write over what it reads: a file, or one in a folder of images.
func guard(cmd *cobra.Command, args []string) error {
	set := cmd.Flags()
	named := func(name string) string {
		if f := set.Lookup(name); f != nil && f.Changed && f.Value.Type() == "string" {
			return f.Value.String()
		}
		return ""
	}
	for _, w := range writes {
		to := named(w)
		if to == "" {
			continue
		}
		for _, r := range reads {
			from := named(r)
			if from == "" {
				continue
			}
			if overwrites(to, from) || strings.HasSuffix(from, ".data") && overwrites(to, strings.TrimSuffix(from, ".data")+".labels") {
				return fmt.Errorf("--%s %s would write over what --%s reads: name another output", w, to, r)
			}
		}
		for _, from := range args {
			if sameFile(to, from) || cmd.HasParent() && cmd.Parent().Name() == "data" && overwrites(to, from) {
				return fmt.Errorf("--%s %s would write over what is read: name another output", w, to)
			}
		}
	}
	return nil
}

// overwrites says whether a path is that of an input, or of a file in it that is there.
func overwrites(to, from string) bool {
	if sameFile(to, from) {
		return true
	}
	st, err := os.Stat(to)
	if err != nil || !st.Mode().IsRegular() {
		return false
	}
	a, err := filepath.EvalSymlinks(to)
	b, err2 := filepath.EvalSymlinks(from)
	if err != nil || err2 != nil {
		return false
	}
	if a, err = filepath.Abs(a); err != nil {
		return false
	}
	if b, err = filepath.Abs(b); err != nil {
		return false
	}
	return strings.HasPrefix(a, b+string(filepath.Separator))
}
