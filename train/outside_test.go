package train

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestOutside builds and runs the README's net of its own, in 30 lines, in a module of its own, without a network.
func TestOutside(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	t.Parallel()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	_, program, ok := strings.Cut(read("README.md"), "```go\npackage main\n")
	program, _, ok2 := strings.Cut(program, "```\n")
	if !ok || !ok2 {
		t.Fatal("the README has no program")
	}
	_, requires, _ := strings.Cut(read("go.mod"), "\nrequire (")
	dir := t.TempDir()
	for name, text := range map[string]string{
		"main.go": "package main\n" + program,
		"go.mod":  "module outside\n\ngo 1.25.0\n\nrequire onlinerna v0.0.0\n\nreplace onlinerna => " + root + "\n\nrequire (" + requires,
		"go.sum":  read("go.sum"),
	} {
		put(t, filepath.Join(dir, name), []byte(text))
	}
	cmd := exec.CommandContext(t.Context(), "go", "run", ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=-mod=mod -buildvcs=false -trimpath", "GOWORK=off", "CGO_ENABLED=0")
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := cmd.Run(); err != nil || strings.Count(out.String(), "\nepoch ") != 5 || !strings.HasSuffix(out.String(), "error: <nil>\n") {
		t.Errorf("%v\n%s%s", err, out.String(), stderr.String())
	}
	if n := strings.Count("package main\n"+program, "\n"); n > 30 {
		t.Errorf("the README's own net has %d lines", n)
	}
}

// TestSets refuses sets that are no training set.
func TestSets(t *testing.T) {
	set := func(n, classes, label int) *listed { return &listed{n, classes, label} }
	for _, c := range []struct {
		config Config
		want   string
	}{
		{Config{Val: set(2, 2, 0)}, "without training images"},
		{Config{Train: set(2, 2, 2)}, "has the label 2: there are 2 classes"},
		{Config{Train: set(0, 2, 0)}, "no images"},
		{Config{Train: set(2, 2, 0), Val: set(2, 3, 0)}, "other classes"},
		{Config{Train: set(2, 2, 0), ValData: "x"}, "Config.Val"},
	} {
		if r, err := New(c.config, cpuDevice(t, 1)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
			if r != nil {
				r.Close()
			}
		}
	}
}
