package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestConvert converts a run's weights to PyTorch's format and back, evaluates them and starts another run with more
// classes from them.
func TestConvert(t *testing.T) {
	dir := t.TempDir()
	run := filepath.Join(dir, "run")
	mustRun(t, append([]string{"train", "--epochs", "1", "-o", run, "-q", "--rna", "off"}, quick[:6]...)...)
	best, pt, back := filepath.Join(run, "best.safetensors"), filepath.Join(dir, "best.pt"),
		filepath.Join(dir, "back.safetensors")
	mustRun(t, "convert", best, pt)
	mustRun(t, "convert", pt, back)
	a, err := os.ReadFile(best)
	b, err2 := os.ReadFile(back)
	if err != nil || err2 != nil || !bytes.Equal(a, b) {
		t.Errorf("there and back is not the same: %v, %v", err, err2)
	}
	want := mustRun(t, "eval", "--weights", best)
	if got := mustRun(t, "eval", "--weights", pt); got != want {
		t.Errorf("evaluated:\n%swant\n%s", got, want)
	}
	out := mustRun(t, append([]string{"train", "--epochs", "1", "--init", pt, "--num-classes", "12", "-o",
		filepath.Join(dir, "fine"), "-q", "--rna", "off"}, quick[:6]...)...)
	if !strings.Contains(strings.Join(strings.Fields(out), " "), "all but the last layer, which starts fresh with 12 "+
		"outputs: fc") {
		t.Errorf("output\n%s", out)
	}
	for _, c := range []struct{ args, want string }{
		{"convert " + best, "want two files"},
		{"convert " + best + " " + best, "both read and written"},
		{"convert " + best + " x.bin", ".safetensors, .pt or .pth"},
		{"convert " + best + " x.pt --key model", "a safetensors file has none"},
		{"eval --weights " + pt + " --key model", "without a key"},
		{"train --key model", "there is none"},
	} {
		fails(t, strings.Fields(c.args), c.want)
	}
}

// TestInterruptedWeights: convert and export that are interrupted write nothing and say so.
func TestInterruptedWeights(t *testing.T) {
	dir := t.TempDir()
	trained := filepath.Join(dir, "run")
	mustRun(t, append([]string{"train", "--epochs", "1", "-o", trained, "-q", "--rna", "off"}, quick[:6]...)...)
	best := filepath.Join(trained, "best.safetensors")
	ctx, stop := context.WithCancel(t.Context())
	stop()
	for _, args := range [][]string{{"convert", best, filepath.Join(dir, "x.pt")},
		{"convert", best, filepath.Join(dir, "x.safetensors")}, {"export", best, "-o", filepath.Join(dir, "x.onnx")}} {
		var out, log bytes.Buffer
		status := run(ctx, args, &out, &log)
		if status != 130 || log.String() != "rna: interrupted, nothing was written\n" || out.Len() > 0 {
			t.Errorf("%s: status %d, %s%s", args[0], status, &out, &log)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
