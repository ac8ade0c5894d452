package main

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each panel has both curves, from the same first residual, and rna.Solve's ends a million times lower than plain
// iteration at that number of evaluations.
func TestCurves(t *testing.T) {
	panels, err := draw()
	if err != nil || len(panels) != len(shown) {
		t.Fatal(len(panels), err)
	}
	for _, p := range panels {
		plain, solved := p.Curves[0], p.Curves[1]
		n := len(solved.X)
		if len(plain.X) != longest || n < 10 || math.Abs(solved.Y[0]/plain.Y[0]-1) > 1e-12 || plain.X[n-1] != solved.X[n-1] {
			t.Fatalf("%s: %d and %d points", p.Title, len(plain.X), n)
		}
		if gain := plain.Y[n-1] / solved.Y[n-1]; gain < 1e6 {
			t.Errorf("%s: after %d evaluations %g against %g", p.Title, n, solved.Y[n-1], plain.Y[n-1])
		}
	}
	path := filepath.Join(t.TempDir(), "solve.svg")
	if err := write(path); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), ">rna.Solve<") || !strings.Contains(string(text), ">Sinkhorn<") {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	if write(filepath.Join(t.TempDir(), "none", "solve.svg")) == nil ||
		write(filepath.Join(t.TempDir(), "solve.txt")) == nil {
		t.Error("a file that cannot be written")
	}
}
