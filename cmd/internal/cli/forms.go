package cli

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The formats of written files by extension: weights, pictures, tables and so on.
var (
	weightForms  = []string{".safetensors", ".pt", ".pth"}
	netForms     = []string{".onnx"}
	pictureForms = []string{".png", ".jpg", ".jpeg"}
	tableForms   = []string{".csv"}
	recordForms  = []string{".json"}
)

// otherForms are extensions of formats that no command writes.
var otherForms = []string{".torchscript", ".bin", ".ckpt", ".h5", ".keras", ".npz", ".npy", ".gguf", ".tflite", ".pb",
	".engine", ".tsv", ".xlsx", ".parquet", ".yaml", ".yml",
	".html", ".svg", ".pdf", ".gif", ".webp", ".bmp", ".tif", ".tiff"}

// formsOf returns the formats of a command's output option, nil if the option ignores the extension or checks it
// itself.
func formsOf(command, option string) []string {
	switch {
	case option == "out" && (command == "extrapolate" || command == "convert"):
		return weightForms
	case option == "out" && command == "export":
		return netForms
	case option == "out" && command == "show", option == "worst", option == "sheet":
		return pictureForms
	case option == "csv", option == "predictions":
		return tableForms
	case option == "json-file", option == "properties":
		return recordForms
	}
	return nil
}

// checkForm rejects an output whose extension implies another format than it would have, and names the option or
// command that writes that format.
func checkForm(cmd *cobra.Command, option, path string) error {
	own, ext := formsOf(cmd.Name(), option), strings.ToLower(filepath.Ext(path))
	known := slices.Concat(weightForms, netForms, pictureForms, tableForms, recordForms, otherForms)
	if own == nil || ext == "" || slices.Contains(own, ext) || option != "out" && !slices.Contains(known, ext) {
		return nil
	}
	hint := ""
	switch {
	case slices.Contains(netForms, ext):
		hint = "; rna export writes ONNX"
	case slices.Contains(weightForms, ext):
		hint = "; rna convert writes " + list(weightForms)
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if kind, _ := pflag.UnquoteUsage(f); kind == "file" && f.Name != option &&
			slices.Contains(formsOf(cmd.Name(), f.Name), ext) {
			hint = "; --" + f.Name + " writes " + ext
		}
		if f.Value.Type() == "bool" && "."+f.Name == ext {
			hint = "; --" + f.Name + " prints that, and > FILE behind it writes it to a file"
		}
	})
	return fmt.Errorf("--%s %s: it is written as %s: name it so%s", option, path, list(own), hint)
}

func list(endings []string) string { return strings.Join(endings, ", ") }

// shortOutput makes -o the short form of the first of these options that the command has.
func shortOutput(groups []Group) {
	var options []*pflag.Flag
	for _, g := range groups {
		g.VisitAll(func(f *pflag.Flag) {
			switch {
			case f.Shorthand == "o" && f.Hidden:
				f.Shorthand = ""
			case !f.Hidden:
				options = append(options, f)
			}
		})
	}
	if slices.ContainsFunc(options, func(f *pflag.Flag) bool { return f.Shorthand == "o" }) {
		return
	}
	for _, name := range []string{"out", "predictions", "sheet", "plot", "csv", "properties", "json-file"} {
		for _, f := range options {
			if kind, _ := pflag.UnquoteUsage(f); f.Name == name && kind == "file" {
				f.Shorthand = "o"
				return
			}
		}
	}
}
