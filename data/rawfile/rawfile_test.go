package rawfile

import (
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

func whole(t testing.TB) []byte {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "x"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, err := NewWriter(f)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if err := w.Add(bytes.Repeat([]byte{byte(i)}, 3*(i+1)*5), i+1, 5, int32(10+i),
			string(rune('a'+i))); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestRoundTrip(t *testing.T) {
	b := whole(t)
	list, err := Read(bytes.NewReader(b), int64(len(b)))
	if err != nil || len(list) != 3 {
		t.Fatal(list, err)
	}
	for i, e := range list {
		if e.Offset%align != 0 || e.Width != i+1 || e.Height != 5 || e.Label != int32(10+i) ||
			e.Name != string(rune('a'+i)) {
			t.Errorf("image %d: %+v", i, e)
		}
		if !bytes.Equal(b[e.Offset:e.Offset+e.Size()], bytes.Repeat([]byte{byte(i)}, 15*(i+1))) {
			t.Errorf("image %d: other pixels", i)
		}
	}
	w := &Writer{w: discard{}}
	for _, c := range []struct{ n, width, height int }{{2, 1, 1}, {0, 0, 1}, {3 * (MaxSide + 1), MaxSide + 1, 1}} {
		if w.Add(make([]byte, c.n), c.width, c.height, 0, "x") == nil {
			t.Errorf("no error of %+v", c)
		}
	}
}

type discard struct{}

func (discard) Write(b []byte) (int, error)    { return len(b), nil }
func (discard) Seek(int64, int) (int64, error) { return 0, io.EOF }

// A file that is cut short, or changed in its header or index, is an error.
func TestDamaged(t *testing.T) {
	b := whole(t)
	for n := range b {
		if _, err := Read(bytes.NewReader(b[:n]), int64(n)); err == nil {
			t.Fatalf("no error of the first %d of %d bytes", n, len(b))
		}
	}
	list, err := Read(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	index := int(list[2].Offset+list[2].Size()+align-1) / align * align
	rng := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		m := bytes.Clone(b)
		at := rng.IntN(headerSize + len(b) - index)
		if at >= headerSize {
			at += index - headerSize
		}
		m[at] ^= byte(1 + rng.IntN(255))
		if _, err := Read(bytes.NewReader(m), int64(len(m))); err == nil {
			t.Fatalf("no error of byte %d changed", at)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(whole(f))
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := Read(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		for _, e := range list {
			if e.Offset < 0 || e.Offset+e.Size() > int64(len(b)) {
				t.Errorf("%+v of %d bytes", e, len(b))
			}
		}
	})
}
