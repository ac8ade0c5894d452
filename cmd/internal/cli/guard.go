package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"onlinerna/data/format"
	"onlinerna/internal/canvas"
	"onlinerna/internal/files"
)

// Options that name inputs and outputs, in every command that has them.
var (
	Reads  = []string{"weights", "init", "teacher", "data", "val-data", "eval", "classes", "config", "y0", "base", "font"}
	Writes = []string{"out", "json-file", "csv", "plot", "predictions", "confusion", "worst", "sheet", "properties",
		"model-card"}
)

// Guard checks before a command begins that its outputs can be written, that none is written twice, and that none
// overwrites an input: a file, or one in a folder of images.
func Guard(cmd *cobra.Command, args []string) error {
	if err := checkFiles(cmd, args); err != nil {
		return Usage(cmd, err)
	}
	return nil
}

func checkFiles(cmd *cobra.Command, args []string) error {
	named := func(name string) (path, kind string) {
		f := cmd.Flags().Lookup(name)
		if f == nil || !f.Changed || f.Value.Type() != "string" {
			return "", ""
		}
		kind, _ = pflag.UnquoteUsage(f)
		return f.Value.String(), kind
	}
	if err := noFile(cmd, args); err != nil {
		return err
	}
	var outputs []string
	for _, w := range Writes {
		to, kind := named(w)
		if to == "" {
			continue
		}
		if kind == "file" {
			outputs = append(outputs, to)
		}
		for _, r := range Reads {
			from, _ := named(r)
			if overwrites(to, from) || strings.HasSuffix(from, ".data") && overwrites(to, strings.TrimSuffix(from,
				".data")+".labels") {
				return fmt.Errorf("--%s %s would write over the input of --%s: name another output", w, to, r)
			}
			if ofRun(to, from) {
				return fmt.Errorf("--%s %s belongs to the run in %s: name another output", w, to, from)
			}
		}
		for _, from := range args {
			if isSame(to, from) || (w == "sheet" || cmd.HasParent() && cmd.Parent().Name() == "data") && overwrites(to, from) {
				return fmt.Errorf("--%s %s would write over an input: name another output", w, to)
			}
			if ofRun(to, from) {
				return fmt.Errorf("--%s %s belongs to the run in %s: name another output", w, to, from)
			}
		}
		if err := checkForm(cmd, w, to); err != nil {
			return err
		}
	}
	if err := files.CheckOutputs(outputs...); err != nil {
		return err
	}
	if plot, _ := named("plot"); plot != "" { // the name says the format
		_, err := canvas.FormatOf(plot)
		return err
	}
	return nil
}

// noFile rejects a file name after --json or --csv of a command that prints with them.
func noFile(cmd *cobra.Command, args []string) error {
	for _, name := range []string{"json", "csv"} {
		f := cmd.Flags().Lookup(name)
		if f == nil || !f.Changed || f.Value.Type() != "bool" {
			continue
		}
		for _, arg := range args {
			if _, err := os.Stat(arg); err == nil || !strings.EqualFold(filepath.Ext(arg), "."+name) {
				continue
			}
			if cmd.Flags().Lookup(name+"-file") != nil {
				return fmt.Errorf("--%s takes no file: it prints; --%[1]s-file %s writes one", name, arg)
			}
			return fmt.Errorf("--%s takes no file: it prints; > %s behind it writes that to a file", name, arg)
		}
	}
	return nil
}

// isSame reports whether two paths name the same existing file.
func isSame(a, b string) bool {
	_, err := os.Stat(b)
	return err == nil && files.Same(a, b)
}

// overwrites reports whether a path is an input, or an existing file in one.
func overwrites(to, from string) bool {
	if isSame(to, from) {
		return true
	}
	st, err := os.Stat(to)
	if err != nil || !st.Mode().IsRegular() || from == "" || isReport(to) {
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

// isReport reports whether a file name belongs to a kind that is never read from a folder of images, such as a table
// beside the class folders.
func isReport(path string) bool {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".json", ".svg", ".pdf", ".safetensors", ".onnx", ".pt", ".pth":
		return true
	case ".csv":
		return filepath.Base(path) != format.KaggleSolution
	}
	return false
}

// ofRun reports whether a file belongs to the run in a folder: one that the run wrote there, or any in its folders of
// weights and checkpoints, whose files it counts.
func ofRun(path, folder string) bool {
	if folder == "" || !files.IsRegular(filepath.Join(folder, "config.json")) {
		return false
	}
	dir := filepath.Dir(path)
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if files.Same(d, filepath.Join(folder, "kept")) || files.Same(d, filepath.Join(folder, "checkpoint")) {
			return true
		}
	}
	switch filepath.Base(path) {
	case "config.json", "metrics.jsonl", "sessions.jsonl", "evaluation.json", "best.safetensors", "final.safetensors",
		"rna.safetensors", "ema.safetensors":
		return files.IsRegular(path) && files.Same(dir, folder)
	}
	return false
}
