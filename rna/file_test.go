package rna

import (
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
)

// Windows in files have the bits of windows in memory, also where spans are cut.
func TestFileEqualsHost(t *testing.T) {
	vs := contraction(2*spanBytes/4+3*blockLen+17, 5, 8)
	d := len(vs[0])
	for _, tt := range []struct {
		name       string
		host, file func(dim int) (Space, error)
	}{
		{"float32", func(d int) (Space, error) { return NewHost32(d, 2) },
			func(d int) (Space, error) { return NewFile32(t.TempDir(), d, 3) }},
		{"float64", func(d int) (Space, error) { return NewHost64(d, 1) },
			func(d int) (Space, error) { return NewFile64(t.TempDir(), d, 2) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var gram, y []float64
			for i, make := range []func(int) (Space, error){tt.host, tt.file} {
				s, err := make(d)
				if err != nil {
					t.Fatal(err)
				}
				w := window(t, s, 3)
				push(t, w, vs...)
				g, x := w.Gram(0).RawSymmetric().Data, extrapolate(t, w, Options{Beta: Set(.6)})
				if i == 0 {
					gram, y = g, x
					continue
				}
				sameBits(t, "Gram matrix", g, gram)
				sameBits(t, "y⁺", x, y)
			}
		})
	}
}

// All widths are read from all widths, in parts.
func TestFileReads(t *testing.T) {
	const d = 10*blockLen + 5
	want := contraction(d, 1, 9)[0]
	for _, make64 := range []bool{false, true} {
		s, err := NewFile32(t.TempDir(), d, 1)
		if make64 {
			s, err = NewFile64(t.TempDir(), d, 1)
		}
		if err != nil {
			t.Fatal(err)
		}
		w := window(t, s, 1)
		push(t, w, want)
		for _, at := range [][2]int{{0, d}, {1, 1}, {d - 1, 1}, {7, 9 * blockLen}, {d, 0}} {
			narrow, wide := make([]float32, at[1]), make([]float64, at[1])
			if err := errors.Join(w.Vector(0).ReadAt(narrow, at[0]), w.Vector(0).ReadAt64(wide, at[0])); err != nil {
				t.Fatal(err)
			}
			sameBits(t, "float64", wide, want[at[0]:at[0]+at[1]])
			for i, v := range narrow {
				if float64(v) != want[at[0]+i] {
					t.Fatalf("float32: element %d is %v, want %v", at[0]+i, v, want[at[0]+i])
				}
			}
		}
		for _, at := range []int{-1, d - 1, math.MaxInt} {
			if err := w.Vector(0).ReadAt64(make([]float64, 2), at); err == nil {
				t.Errorf("read at %d of %d went through", at, d)
			}
		}
	}
}

// Close removes files, most of which lost their names at once; errors name them.
func TestFileLife(t *testing.T) {
	dir := t.TempDir()
	s, err := NewFile32(dir, 100, 1)
	if err != nil {
		t.Fatal(err)
	}
	w, err := NewWindow(s, 2)
	if err != nil {
		t.Fatal(err)
	}
	push(t, w, contraction(100, 5, 1)...)
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("%v, left %v", err, left)
	}

	w = window(t, s, 2)
	push(t, w, contraction(100, 3, 1)...)
	v := w.columns[1].x.vector.(*fileVector[float32])
	if err := v.file.Truncate(40); err != nil {
		t.Fatal(err)
	}
	_, err = w.Extrapolate(make(Slice32, 100), Options{})
	if !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), v.file.Name()) {
		t.Errorf("a file that was cut off: %v", err)
	}
	if err := w.Push(Slice64(contraction(100, 1, 2)[0])); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("push beside a file that was cut off: %v", err)
	}

	for _, bad := range []string{filepath.Join(dir, "absent"), os.Args[0]} {
		if _, err := NewFile64(bad, 1, 1); err == nil || !strings.Contains(err.Error(), bad) {
			t.Errorf("space in %s: %v", bad, err)
		}
	}
	if _, err := NewFile32(dir, 0, 1); err == nil {
		t.Error("a space of empty vectors went through")
	}
	gone := filepath.Join(dir, "gone")
	if err := os.Mkdir(gone, 0o700); err != nil {
		t.Fatal(err)
	}
	s, err = NewFile32(gone, 1, 1)
	if err := errors.Join(err, os.Remove(gone)); err != nil {
		t.Fatal(err)
	}
	w = window(t, s, 1)
	if err := w.Push(Slice32{1}); err == nil || !strings.Contains(err.Error(), gone) {
		t.Errorf("push into a directory that is gone: %v", err)
	}
}

// wave is a vector computed when it is read, and a sink that only sums up.
type wave struct {
	dim, k int
	sum    float64
}

func (v *wave) Len() int { return v.dim }

func (v *wave) ReadAt(dst []float32, off int) error {
	for i := range dst {
		dst[i] = float32((off+i)%(5+3*v.k)) / float32(1+v.k)
	}
	return nil
}

func (v *wave) WriteAt(src []float32, _ int) error {
	for _, x := range src {
		v.sum += float64(x)
	}
	return nil
}

// resident returns a line of /proc/self/status in MiB.
func resident(t *testing.T, line string) int {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip(err)
	}
	for l := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(l, line+":"); ok {
			kib, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")))
			if err != nil {
				t.Fatal(err)
			}
			return kib >> 10
		}
	}
	t.Skip("no " + line)
	return 0
}

// A window of 600 MB is filled and combined while the process never holds 200 MB.
func TestFileMemory(t *testing.T) {
	if testing.Short() || runtime.GOOS != "linux" {
		t.Skip("600 MB in files, on Linux")
	}
	const d, n = 37_500_000, 3
	debug.FreeOSMemory()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil { // the peak starts anew
		t.Skip(err)
	}
	s, err := NewFile32(t.TempDir(), d, 2)
	if err != nil {
		t.Fatal(err)
	}
	w := window(t, s, n)
	for k := range n + 1 {
		if err := w.Push(&wave{dim: d, k: k}); err != nil {
			t.Fatal(err)
		}
	}
	to := &wave{dim: d}
	if res, err := w.Extrapolate(to, Options{}); err != nil || res.Status != OK {
		t.Fatal(err, res.Err())
	}
	if math.IsNaN(to.sum) || to.sum == 0 {
		t.Errorf("the combination sums up to %v", to.sum)
	}
	if peak := resident(t, "VmHWM"); peak > 200 {
		t.Errorf("the process held %d MiB", peak)
	} else {
		t.Logf("the process held %d MiB", peak)
	}
}
