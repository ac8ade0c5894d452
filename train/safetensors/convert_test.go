package safetensors

import (
	"encoding/binary"
	"math"
	"testing"
)

// Every 16-bit number survives a round trip, and each midpoint between neighbours rounds to the even one.
func TestHalvesRoundTrip(t *testing.T) {
	for _, dtype := range []DType{F16, BF16} {
		infinity := uint16(0x7c00)
		if dtype == BF16 {
			infinity = 0x7f80
		}
		value := func(h uint16) float64 {
			var v [1]float64
			if err := Decode(v[:], binary.LittleEndian.AppendUint16(nil, h), dtype); err != nil {
				t.Fatal(err)
			}
			return v[0]
		}
		encode := func(v float64) (uint16, int) {
			var b [2]byte
			bad, err := Encode(b[:], []float64{v}, dtype)
			if err != nil {
				t.Fatal(err)
			}
			return binary.LittleEndian.Uint16(b[:]), bad
		}
		for h := uint16(0); h < infinity; h++ {
			v := value(h)
			for sign, s := range map[uint16]float64{0: 1, 0x8000: -1} {
				if got, bad := encode(math.Copysign(v, s)); got != h|sign || bad >= 0 {
					t.Fatalf("%s: %v gives %04x, want %04x", dtype, v*s, got, h|sign)
				}
			}
			next := value(h+1) - v
			if h+1 == infinity {
				next = v - value(h-1)
			}
			even := h + h&1
			mid := v + next/2
			if got, _ := encode(mid); got != even {
				t.Fatalf("%s: %v, between %04x and %04x, gives %04x", dtype, mid, h, h+1, got)
			}
			if got, _ := encode(math.Nextafter(mid, 0)); got != h {
				t.Fatalf("%s: just below %v gives %04x, want %04x", dtype, mid, got, h)
			}
			if got, _ := encode(math.Nextafter(mid, math.Inf(1))); got != h+1 {
				t.Fatalf("%s: just above %v gives %04x, want %04x", dtype, mid, got, h+1)
			}
		}
		for _, v := range []float64{math.Inf(1), 1e300} {
			if got, bad := encode(v); got != infinity || bad != 0 {
				t.Errorf("%s: %v gives %04x, overflow at %d", dtype, v, got, bad)
			}
		}
		if got, bad := encode(math.NaN()); !math.IsNaN(value(got)) || bad != 0 {
			t.Errorf("%s: NaN gives %04x, overflow at %d", dtype, got, bad)
		}
	}
}

// TestEncodeDecode covers lengths around the unrolled loops, and returns the first of several overflows.
func TestEncodeDecode(t *testing.T) {
	for _, dtype := range []DType{F64, F32, F16, BF16} {
		for n := range 11 {
			src, got := make([]float64, n), make([]float64, n)
			for i := range src {
				src[i] = float64(i) - 3.5
			}
			b := make([]byte, n*dtype.Size())
			if bad, err := Encode(b, src, dtype); err != nil || bad != -1 {
				t.Fatal(bad, err)
			}
			if err := Decode(got, b, dtype); err != nil {
				t.Fatal(err)
			}
			for i := range got {
				if got[i] != src[i] {
					t.Errorf("%s: element %d of %d is %v, want %v", dtype, i, n, got[i], src[i])
				}
			}
		}
		b := make([]byte, 4*dtype.Size())
		if bad, err := Encode(b, []float64{0, 1, math.Inf(-1), math.NaN()}, dtype); err != nil || bad != 2 {
			t.Errorf("%s: overflow at %d, want 2 (%v)", dtype, bad, err)
		}
		if _, err := Encode(b, make([]float64, 3), dtype); err == nil {
			t.Errorf("%s: bytes of another length: no error", dtype)
		}
		if err := Decode(make([]float64, 5), b, dtype); err == nil {
			t.Errorf("%s: numbers of another length: no error", dtype)
		}
	}
	if err := Decode(make([]float64, 1), make([]byte, 8), I64); err == nil {
		t.Error("integers are decoded as floating-point numbers")
	}
}

// Parts in any order make the same file as whole tensors.
func TestWriteAt(t *testing.T) {
	dir := t.TempDir()
	list := []Tensor{{Name: "a", DType: F32, Shape: []int{3}}, {Name: "b", DType: BF16, Shape: []int{2, 2}}}
	path := dir + "/x.safetensors"
	w, err := Create(path, list, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []struct {
		name string
		off  int64
		b    string
	}{{"b", 4, "5678"}, {"a", 0, "abcdefgh"}, {"b", 0, "1234"}} {
		if err := w.WriteAt(p.name, []byte(p.b), p.off); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name string
		off  int64
	}{{"a", 9}, {"a", -1}, {"c", 0}} {
		if err := w.WriteAt(c.name, []byte("long"), c.off); err == nil {
			t.Errorf("a part of %s at %d: no error", c.name, c.off)
		}
	}
	if err := w.WriteAt("a", []byte("ijkl"), 8); err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for name, want := range map[string]string{"a": "abcdefghijkl", "b": "12345678"} {
		x, _ := f.Lookup(name)
		off, n := f.Section(x)
		got := make([]byte, n)
		if _, err := f.file.ReadAt(got, off); err != nil || string(got) != want {
			t.Errorf("%s holds %q, want %q (%v)", name, got, want, err)
		}
	}

	if w, err = Create(dir+"/y.safetensors", list, nil); err != nil {
		t.Fatal(err)
	}
	if err := w.WriteAt("a", []byte("abcd"), 0); err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(); err == nil {
		t.Error("a file with bytes missing was committed")
	}
}
