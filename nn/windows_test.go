package nn

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"onlinerna/nn/op"
)

// Rows of windows are those that loops pick, and FromWindows brings them back.
func TestWindows(t *testing.T) {
	const n, c = 2, 3
	for _, w := range []Windows{
		{Height: 4, Width: 6, Rows: 2, Columns: 3},
		{Height: 4, Width: 6, Rows: 2, Columns: 3, Down: 1, Right: 2},
		{Height: 5, Width: 4, Rows: 3, Columns: 3, Down: 1},
		{Height: 5, Width: 4, Rows: 2, Columns: 7, Down: 1, Right: 3},
	} {
		b := scratch()
		x, xs := bound(t, b, "x", op.Shape{n * w.Height * w.Width, c}, func(i int) float64 { return float64(i + 1) })
		y := b.Windows("windows", x, w)
		z := b.FromWindows("images", y, w)
		if b.err != nil {
			t.Fatal(b.err)
		}
		runTape(t, b.model.Graph)
		if got := values(t, z); !slices.Equal(got, xs) {
			t.Errorf("%+v: %g come back as %g", w, xs, got)
		}
		var want []float64
		down, across := (w.Height+w.Rows-1)/w.Rows, (w.Width+w.Columns-1)/w.Columns
		for i := range n * down * across * w.Rows * w.Columns {
			token, window := i%(w.Rows*w.Columns), i/(w.Rows*w.Columns)
			row := (window/across%down*w.Rows + token/w.Columns + w.Down) % (down * w.Rows)
			column := (window%across*w.Columns + token%w.Columns + w.Right) % (across * w.Columns)
			for k := range c {
				if row < w.Height && column < w.Width {
					want = append(want, xs[((window/(down*across)*w.Height+row)*w.Width+column)*c+k])
				} else {
					want = append(want, 0)
				}
			}
		}
		if got := values(t, y); !slices.Equal(got, want) {
			t.Errorf("%+v: windows are %g, want %g", w, got, want)
		}
		if got := w.Count(); got != down*across {
			t.Errorf("%+v: %d windows, want %d", w, got, down*across)
		}
	}
}

// By hand: a row of four tokens, shifted by one, has the windows 1 2 and 3 0.
func TestWindowsMask(t *testing.T) {
	for _, w := range []Windows{
		{Height: 1, Width: 4, Rows: 1, Columns: 2, Right: 1},
		{Height: 4, Width: 1, Rows: 2, Columns: 1, Down: 1},
	} {
		want := []float64{0, 0, 0, 0, 0, 0, 0, 0, 0, -100, -100, 0, 0, -100, -100, 0}
		got := w.Mask(2)
		if !got.Shape.Equal(op.Shape{4, 2, 2}) || !slices.Equal(got.Data.([]float64), want) {
			t.Errorf("%+v: %v, want %v", w, got, want)
		}
		if got := w.Offsets().Data.([]int32); !slices.Equal(got, []int32{1, 0, 2, 1}) {
			t.Errorf("%+v: offsets are %d", w, got)
		}
	}
	// Down and right: windows of 2×2 of 4×4 tokens; the last one has a token of each corner.
	got := Windows{Height: 4, Width: 4, Rows: 2, Columns: 2, Down: 1, Right: 1}.Mask(1).Data.([]float64)
	none, across := make([]float64, 16), []float64{0, -100, 0, -100, -100, 0, -100, 0, 0, -100, 0, -100, -100, 0, -100, 0}
	down := []float64{0, 0, -100, -100, 0, 0, -100, -100, -100, -100, 0, 0, -100, -100, 0, 0}
	all := []float64{0, -100, -100, -100, -100, 0, -100, -100, -100, -100, 0, -100, -100, -100, -100, 0}
	if want := slices.Concat(none, across, down, all); !slices.Equal(got, want) {
		t.Errorf("%g, want %g", got, want)
	}
	o := Windows{Height: 2, Width: 3, Rows: 2, Columns: 3}.Offsets().Data.([]int32)
	if !slices.Equal(o[:6], []int32{7, 6, 5, 2, 1, 0}) || o[35] != 7 || o[30] != 14 {
		t.Errorf("offsets are %d", o)
	}
}

func TestWindowsErrors(t *testing.T) {
	for _, c := range []struct {
		w    Windows
		want string
	}{
		{Windows{Height: 3, Width: 2, Rows: 2}, "layer w: windows {Height:3 Width:2 Rows:2 Columns:0 Down:0 Right:0}: height, width, rows and columns must be 1 to 1048576"},
		{Windows{Height: 3, Width: 2, Rows: 2, Columns: 2, Down: 3}, "Down:3 Right:0}: shifts must be"},
		{Windows{Height: 3, Width: 2, Rows: 2, Columns: 2, Right: -1}, "Down:0 Right:-1}: shifts must be"},
		{Windows{Height: 1 << 32, Width: 1 << 32, Rows: 2, Columns: 2}, "must be 1 to 1048576"},
		{Windows{Height: 900, Width: 900, Rows: 129, Columns: 128}, "must have at most 16384 tokens"},
		{Windows{Height: 5, Width: 2, Rows: 2, Columns: 2}, "layer w: the rows [12 4] are not those of images of 10 tokens"},
	} {
		b := scratch()
		b.Windows("w", b.input("x", op.T(op.Float64, 12, 4)), c.w)
		if !strings.Contains(fmt.Sprint(b.err), c.want) {
			t.Errorf("%v, want %s", b.err, c.want)
		}
	}
	b := scratch()
	b.FromWindows("w", b.input("x", op.T(op.Float64, 14, 4)), Windows{Height: 3, Width: 2, Rows: 2, Columns: 2})
	if want := "layer w: the rows [14 4] are not those of images of 8 tokens"; fmt.Sprint(b.err) != want {
		t.Errorf("%v, want %s", b.err, want)
	}
}
