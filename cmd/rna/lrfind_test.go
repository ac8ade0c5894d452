package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLRFind sweeps twice in one folder: the same seed gives the same bytes, and no other files.
func TestLRFind(t *testing.T) {
	t.Chdir(t.TempDir())
	const plot, table = "lr.svg", "lr.json"
	sweep := func(seed string) (out string, curve []byte) {
		t.Helper()
		out = mustRun(t, "lr-find", "--seed", seed, "--batch", "32", "--threads", "2", "--steps", "60", "--from", "1e-3",
			"--plot", plot, "--json-file", table)
		b, err := os.ReadFile(table)
		if err != nil {
			t.Fatal(err)
		}
		return out, b
	}
	out, first := sweep("1")
	var r struct {
		Points []struct{ LR, Loss, Smoothed float64 }
		Valley float64
	}
	if err := json.Unmarshal(first, &r); err != nil || len(r.Points) < 20 || r.Points[0].LR != 1e-3 ||
		!(r.Points[0].Loss > 2) {
		t.Fatalf("%s, %v", first, err)
	}
	if r.Valley < 0.005 || r.Valley > 0.3 || !strings.Contains(out, "Suggestion: --lr 0.") || !strings.Contains(out,
		"smoothed") {
		t.Errorf("valley %g\n%s", r.Valley, out)
	}
	if again, second := sweep("1"); !bytes.Equal(first, second) || again != out {
		t.Error("the same seed gives another curve")
	}
	if _, other := sweep("2"); bytes.Equal(first, other) {
		t.Error("another seed gives the same curve")
	}
	if svg, err := os.ReadFile(plot); err != nil || !bytes.Contains(svg, []byte("lenet on glyphs, SGD, batch 32")) {
		t.Errorf("no figure: %v", err)
	}
	left, err := filepath.Glob("*")
	if err != nil || len(left) != 2 {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestLRFindBad(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"lr-find --epochs 3", "does not take --epochs"}, {"lr-find --rna off --out x", "does not take --rna, --out"},
		{"lr-find --from 2 --to 1", "must rise"}, {"lr-find --steps 1", "at least 10"}, {"lr-find x", "unexpected argument"},
		{"lr-find --huber-delta 2", "huber-delta goes with loss huber"},
		{"lr-find --loss bce --asl-gamma 0,4", "go with loss asl"},
	} {
		code, _, stderr := runRNA(t, strings.Fields(c.line)...)
		if code == 0 || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: %d, %s", c.line, code, stderr)
		}
	}
	help := mustRun(t, "lr-find", "--help")
	if !strings.Contains(help, "--data photos --val-split 0.2") { // class folders alone want a split
		t.Error("the example does not work")
	}
	for _, not := range []string{"--epochs", "--rna", "--schedule", "--out", "RNA:"} {
		if strings.Contains(help, not) {
			t.Errorf("help has %s", not)
		}
	}
}
