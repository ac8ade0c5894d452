package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// The manifests are YAML with the stated kinds, and the commands in them and in the Slurm script are valid commands of
// rna.
func TestClusterFiles(t *testing.T) {
	dir := filepath.Join("..", "..", "scripts", "cluster")
	for file, kind := range map[string]string{"mpijob.yaml": "MPIJob", "pytorchjob.yaml": "PyTorchJob"} {
		b, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		var m map[string]any
		if err := yaml.Unmarshal(b, &m); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if m["kind"] != kind || !strings.HasPrefix(m["apiVersion"].(string), "kubeflow.org/") {
			t.Errorf("%s: %v %v", file, m["apiVersion"], m["kind"])
		}
		if n := checkCommands(t, file, m); n == 0 {
			t.Errorf("%s: no command of rna", file)
		}
	}
	b, err := os.ReadFile(filepath.Join(dir, "train.sbatch"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if args, ok := strings.CutPrefix(line, "go=("); ok {
			knownFlags(t, "train.sbatch", strings.Fields("train "+args))
		}
	}
}

// checkCommands checks the commands anywhere in a manifest, and counts them.
func checkCommands(t *testing.T, file string, v any) (n int) {
	t.Helper()
	switch v := v.(type) {
	case map[string]any:
		for _, x := range v {
			n += checkCommands(t, file, x)
		}
	case []any:
		var words []string
		for _, x := range v {
			n += checkCommands(t, file, x)
			if s, ok := x.(string); ok {
				words = append(words, strings.Fields(s)...)
			}
		}
		for i, w := range words {
			if w == "rna" && i+1 < len(words) {
				knownFlags(t, file, words[i+1:])
				n++
			}
		}
	}
	return n
}

// knownFlags checks that a command has all options in args.
func knownFlags(t *testing.T, file string, args []string) {
	t.Helper()
	cmd, rest, err := newRoot().Find(args[:1])
	if err != nil || len(rest) > 0 {
		t.Errorf("%s: rna %s: %v", file, args[0], err)
		return
	}
	for _, w := range args[1:] {
		if name, ok := strings.CutPrefix(w, "--"); ok && cmd.Flags().Lookup(name) == nil {
			t.Errorf("%s: rna %s has no option --%s", file, args[0], name)
		}
	}
}
