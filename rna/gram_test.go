package rna_test

import (
	"math/rand/v2"
	"testing"

	"onlinerna/rna"
)

// rows hides a space's method for whole Gram matrices.
type rows struct{ rna.Space }

// TestGram compares the matrix from scratch with the one that grew push by push, bit for bit.
func TestGram(t *testing.T) {
	const dim, n = 20_001, 6
	space, err := rna.NewHost32(dim, 2)
	if err != nil {
		t.Fatal(err)
	}
	w, err := rna.NewWindow(space, n)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	r := rand.New(rand.NewPCG(1, 2))
	x := make(rna.Slice32, dim)
	for range n + 3 {
		for i := range x {
			x[i] += float32(r.NormFloat64())
		}
		if err := w.Push(x); err != nil {
			t.Fatal(err)
		}
	}
	var rs []rna.Residual
	for i := range n {
		rs = append(rs, rna.Residual{X: w.Vector(i + 1).(rna.Vector), Y: w.Vector(i).(rna.Vector)})
	}
	want := w.Gram(0)
	for _, s := range []rna.Space{space, rows{space}} {
		got, err := rna.Gram(s, rs)
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			for j := range n {
				if got.At(i, j) != want.At(i, j) {
					t.Errorf("%T: entry %d, %d is %v, want %v", s, i, j, got.At(i, j), want.At(i, j))
				}
			}
		}
		if _, err := rna.Gram(s, []rna.Residual{{}}); err == nil {
			t.Errorf("%T: a residual without a vector", s)
		}
	}
	if g, err := rna.Gram(space, nil); g != nil || err != nil {
		t.Errorf("no residuals: %v, %v", g, err)
	}
}
