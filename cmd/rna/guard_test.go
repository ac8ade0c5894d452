package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"onlinerna/cmd/internal/cli"
)

// No command overwrites its inputs.
func TestGuard(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	for name, text := range map[string]string{
		"w.safetensors": "weights", "images/val/a/1.png": "image", "x.csv": "1,2\n-1,3\n", "x.data": "1 2\n",
		"x.labels": "1\n", "run/config.json": "{}", "run/kept/epoch-0001.safetensors": "weights",
		"run/checkpoint/000002/state.json": "{}",
	} {
		if err := os.MkdirAll(filepath.Dir(in(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(in(name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("x.csv", in("link.csv")); err != nil {
		t.Skip(err)
	}
	if err := os.CopyFS(in("hub"), os.DirFS("../../train/statedict/testdata/hub")); err != nil {
		t.Fatal(err)
	}
	shards, err := filepath.Glob(in("hub/*.safetensors"))
	if err != nil || len(shards) < 2 {
		t.Fatal(shards, err)
	}
	if err := os.CopyFS(in("other"), os.DirFS(in("hub"))); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(shards[0], in("shard.pt")); err != nil {
		t.Fatal(err)
	}
	before := contents(t, dir)
	for _, args := range [][]string{
		{"merge", in("hub"), in("other"), "-o", shards[1]},
		{"merge", in("hub"), in("other"), "-o", in("shard.pt")},
		{"merge", "--base", in("hub"), in("other"), "-o", shards[0], "--by", "task"},
		{"extrapolate", in("hub"), in("other"), "-o", shards[0]},
		{"extrapolate", in("other"), "--y0", in("hub"), "-o", shards[0]},
		{"convert", in("hub"), shards[0]},
		{"eval", "--weights", in("w.safetensors"), "--data", in("images"), "--predictions", in("w.safetensors")},
		{"eval", "--weights", in("w.safetensors"), "--data", in("images"), "--predictions", in("images/val/a/1.png")},
		{"logreg", "--data", in("x.csv"), "--csv", in("x.csv")},
		{"logreg", "--data", in("x.csv"), "--csv", in("link.csv")},
		{"logreg", "--data", in("x.data"), "--csv", in("x.labels")},
		{"extrapolate", in("w.safetensors"), in("x.csv"), "-o", in("w.safetensors")},
		{"extrapolate", in("run"), "-o", in("run/kept/epoch-0001.safetensors")},
		{"extrapolate", in("run"), "-o", in("run/kept/epoch-0002.safetensors")},
		{"extrapolate", in("run"), "-o", in("run/checkpoint/000002/x.safetensors")},
		{"data", "check", in("images"), "--json-file", in("images/val/a/1.png")},
		{"convert", in("w.safetensors"), in("w.safetensors")},
		{"train", "--data", in("images"), "--out", in("images")},
	} {
		status, _, stderr := runRNA(t, args...)
		if status == 0 || !strings.Contains(stderr, "name another output") {
			t.Errorf("%v: status %d, %s", args, status, stderr)
		}
		for name, text := range contents(t, dir) {
			if before[name] != text {
				t.Fatalf("%v: %s is now %q", args, name, text)
			}
		}
	}
}

func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		all[path] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Devices and pipes are written to directly.
func TestOutputToDevice(t *testing.T) {
	if _, err := os.Stat(os.DevNull); err != nil {
		t.Skip(err)
	}
	mustRun(t, "logreg", "--iterations", "2", "--methods", "gd", "--csv", os.DevNull)
	if st, err := os.Stat(os.DevNull); err != nil || st.Mode().IsRegular() {
		t.Error(st.Mode(), err)
	}
}

// guard knows for every option that names a file whether it is read or written, so that no new option can be forgotten.
func TestGuardKnowsFiles(t *testing.T) {
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if kind, _ := pflag.UnquoteUsage(f); kind == "file" && !slices.Contains(cli.Reads, f.Name) &&
				!slices.Contains(cli.Writes, f.Name) {
				t.Errorf("%s --%s names a file, to be read or written: say so in guard.go", c.CommandPath(), f.Name)
			}
		})
		for _, s := range c.Commands() {
			walk(s)
		}
	}
	walk(newRoot())
}
