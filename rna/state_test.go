package rna

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"testing"
)

// saved is a window as a checkpoint keeps it.
type saved struct {
	state   []byte
	vectors []Slice64
}

func save(t *testing.T, w *Window) saved {
	t.Helper()
	var s saved
	var err error
	if s.state, err = json.Marshal(w.State()); err != nil {
		t.Fatal(err)
	}
	for i := range w.Vectors() {
		v := make(Slice64, w.Space().Dim())
		if err := w.Vector(i).ReadAt64(v, 0); err != nil {
			t.Fatal(err)
		}
		s.vectors = append(s.vectors, v)
	}
	return s
}

func (s saved) load(space Space) (*Window, error) {
	var st State
	if err := json.Unmarshal(s.state, &st); err != nil {
		return nil, err
	}
	return Restore(space, st, func(i int) (Source, error) { return s.vectors[i], nil })
}

// A restored window equals the saved one, then and after further pushes.
func TestRestore(t *testing.T) {
	vs := contraction(blockLen+5, 12, 1)
	spaces(t, len(vs[0]), func(t *testing.T, s Space) {
		for name, fill := range map[string]func(w *Window){
			"empty":      func(w *Window) {},
			"start only": func(w *Window) { push(t, w, vs[0]) },
			"part":       func(w *Window) { push(t, w, vs[:3]...) },
			"full":       func(w *Window) { push(t, w, vs[:8]...) },
			"broken":     func(w *Window) { push(t, w, vs[:6]...); w.Break(); push(t, w, vs[7]) },
			"closed":     func(w *Window) { push(t, w, vs[:6]...); w.Break() },
			"mixed": func(w *Window) {
				push(t, w, vs[:3]...)
				err := w.PushResidual(Slice64(vs[3]), Slice64(vs[4]))
				if err = errors.Join(err, w.PushPair(Slice64(vs[5]), Slice64(vs[6]))); err != nil {
					t.Fatal(err)
				}
			},
			"refused": func(w *Window) {
				push(t, w, vs[:4]...)
				_ = w.Push(Slice64(slices.Repeat([]float64{math.NaN()}, len(vs[0]))))
			},
		} {
			a := window(t, s, 4)
			fill(a)
			file := save(t, a)
			b, err := file.load(s)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if b.Vectors() != a.Vectors() || b.Refused() != a.Refused() || len(b.free) != 0 {
				t.Errorf("%s: %d vectors and %d free, want %d", name, b.Vectors(), len(b.free), a.Vectors())
			}
			for step := 0; ; step++ {
				x, y := save(t, a), save(t, b)
				if string(x.state) != string(y.state) {
					t.Fatalf("%s, step %d: states differ\n%s\n%s", name, step, x.state, y.state)
				}
				for i := range x.vectors {
					sameBits(t, name, y.vectors[i], x.vectors[i])
				}
				if a.Len() > 0 {
					sameBits(t, name, extrapolate(t, b, Options{}), extrapolate(t, a, Options{}))
				}
				if step == 3 {
					break
				}
				push(t, a, vs[8+step])
				push(t, b, vs[8+step])
			}
		}
	})
}

// Scaled columns keep their exponents.
func TestRestoreMagnitudes(t *testing.T) {
	s, _ := NewHost64(3, 1)
	w := window(t, s, 2)
	push(t, w, []float64{0, 0, 0}, []float64{1e-200, 0, 0}, []float64{1e200, 1, 0})
	b, err := save(t, w).load(s)
	if err != nil {
		t.Fatal(err)
	}
	sameBits(t, "c", solve(t, b, Options{}).C, solve(t, w, Options{}).C)
}

func TestRestoreRefuses(t *testing.T) {
	vs := contraction(5, 4, 2)
	s, _ := NewHost32(5, 1)
	w := window(t, s, 3)
	push(t, w, vs...)
	good := w.State()
	vectors := save(t, w).vectors
	intact := func(i int) (Source, error) { return vectors[i], nil }
	for name, change := range map[string]func(st *State){
		"version":           func(st *State) { st.Version = 9 },
		"no version":        func(st *State) { *st = State{} },
		"dim":               func(st *State) { st.Dim = 6 },
		"bits":              func(st *State) { st.Bits = 64 },
		"n is zero":         func(st *State) { st.N = 0 },
		"n is huge":         func(st *State) { st.N = math.MaxInt },
		"more columns":      func(st *State) { st.N = 2 },
		"vectors":           func(st *State) { st.Vectors = 1 << 40 },
		"negative vectors":  func(st *State) { st.Vectors = -1 },
		"unused vector":     func(st *State) { st.Vectors++ },
		"short Gram matrix": func(st *State) { st.Gram = st.Gram[1:] },
		"NaN":               func(st *State) { st.Gram[1] = math.NaN() },
		"other Gram matrix": func(st *State) { st.Gram[2] *= 1.001 },
		"tail":              func(st *State) { st.Tail = 4 },
		"tail below":        func(st *State) { st.Tail = -2 },
		"y":                 func(st *State) { st.Columns[1].Y = -1 },
		"x beyond":          func(st *State) { st.Columns[1].X = 4 },
		"x and r":           func(st *State) { st.Columns[1].R = 0 },
		"neither":           func(st *State) { st.Columns[1].X = -1 },
		"exponent":          func(st *State) { st.Columns[0].Exp = 1 << 20 },
		"counts":            func(st *State) { st.Pushes = -1 },
	} {
		st := good
		st.Columns, st.Gram = slices.Clone(good.Columns), slices.Clone(good.Gram)
		change(&st)
		if w, err := Restore(s, st, intact); err == nil || w != nil {
			t.Errorf("%s: a broken state went through", name)
		}
	}
	for name, load := range map[string]func(i int) (Source, error){
		"missing":   func(i int) (Source, error) { return nil, errRemote },
		"nil":       func(i int) (Source, error) { return nil, nil },
		"short":     func(i int) (Source, error) { return vectors[i][:3], nil },
		"swapped":   func(i int) (Source, error) { return vectors[3-i], nil },
		"truncated": func(i int) (Source, error) { return &remote{v: vectors[i], failAt: 1}, nil },
		"NaN":       func(i int) (Source, error) { return Slice64{1, 2, math.NaN(), 4, 5}, nil },
	} {
		if w, err := Restore(s, good, load); err == nil || w != nil {
			t.Errorf("%s: broken vectors went through", name)
		}
	}
	if _, err := Restore(s, good, nil); err == nil {
		t.Error("no vectors went through")
	}
	if w.Vector(-1) != nil || w.Vector(4) != nil {
		t.Error("vectors beyond the last")
	}
}

func second(_ *Window, err error) error { return err }

// plainSpace has only a Space's methods, as one of another module.
type plainSpace struct{ Space }

// Restore compares products, or only norms in a space that does not compute a whole Gram matrix at once.
func TestRestoreCompares(t *testing.T) {
	host, _ := NewHost64(2, 1)
	if n := threadsOf(plainSpace{host}); n != 1 { // its vectors are for one goroutine
		t.Errorf("%d goroutines read a space of another module", n)
	}
	for name, c := range map[string]struct {
		space    Space
		products bool
	}{"host": {host, true}, "plain": {plainSpace{host}, false}} {
		w := window(t, c.space, 2)
		push(t, w, []float64{0, 0}, []float64{3, 4}, []float64{3, 9}) // residuals (3, 4) and (0, 5)
		st := w.State()
		if want := []float64{25, 20, 25}; !slices.Equal(st.Gram, want) || st.Pushes != 3 || st.Refused != 0 {
			t.Errorf("%s: %+v, want the products %v after 3 pushes", name, st, want)
		}
		vectors := save(t, w).vectors
		intact := func(i int) (Source, error) { return vectors[i], nil }
		if _, err := Restore(c.space, st, intact); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		// Vectors in another order are as good.
		turned := st
		turned.Columns, turned.Tail = slices.Clone(st.Columns), 2-st.Tail
		for i, x := range turned.Columns {
			turned.Columns[i].Y, turned.Columns[i].X = 2-x.Y, 2-x.X
		}
		if _, err := Restore(c.space, turned, func(i int) (Source, error) { return vectors[2-i], nil }); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for n, fails := range map[int]bool{1: true, MaxColumns: false, MaxColumns + 1: true} { // of two residuals
			other := st
			if other.N = n; (second(Restore(c.space, other, intact)) != nil) != fails {
				t.Errorf("%s: a window of %d: no error, or one", name, n)
			}
		}
		for i, fails := range []bool{true, c.products, true} {
			st.Gram = []float64{25, 20, 25}
			st.Gram[i] *= 1 - 2e-9
			if _, err := Restore(c.space, st, intact); (err != nil) != fails {
				t.Errorf("%s: product %d is off by 2e-9: %v", name, i, err)
			}
			st.Gram[i] = []float64{25, 20, 25}[i] * (1 - 5e-10)
			if _, err := Restore(c.space, st, intact); err != nil {
				t.Errorf("%s: product %d is off by 5e-10: %v", name, i, err)
			}
		}
	}
}

func FuzzRestore(f *testing.F) {
	s, _ := NewHost64(2, 1)
	w, _ := NewWindow(s, 2)
	vs := []Slice64{{0, 0}, {1, 2}, {3, 5}}
	for _, v := range vs {
		_ = w.Push(v)
	}
	seed, _ := json.Marshal(w.State())
	f.Add(seed)
	f.Add([]byte(`{"version":1,"n":1,"dim":2,"bits":64,"vectors":1,"columns":[],"tail":0,"gram":[]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var st State
		if json.Unmarshal(b, &st) != nil {
			return
		}
		w, err := Restore(s, st, func(i int) (Source, error) { return vs[i%len(vs)], nil })
		if err != nil {
			return
		}
		dst := make(Slice64, 2)
		if res, err := w.Extrapolate(dst, Options{}); err != nil || !isFinite(dst[0]) || !isFinite(dst[1]) {
			t.Fatalf("%v, %v, wrote %v", res.Status, err, dst)
		}
		if err := w.Push(vs[0]); err != nil {
			t.Fatal(err)
		}
	})
}
