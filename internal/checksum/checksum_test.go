package checksum

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"
)

// The check value of CRC-32C in RFC 3720.
func TestCastagnoli(t *testing.T) {
	if s := Digits(Add(Add(0, []byte("1234")), []byte("56789"))); s != "e3069283" {
		t.Errorf("%s", s)
	}
}

func TestEveryBlock(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, Block - 1, Block, Block + 1, 3*Block + 17} {
		const off = 5
		b := make([]byte, off+n+3)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		sums, err := Blocks(bytes.NewReader(b), off, int64(n))
		if err != nil || len(sums) != Len(int64(n)) {
			t.Fatalf("%d bytes: %d digits, %v", n, len(sums), err)
		}
		check := func() error { return Check(bytes.NewReader(b), off, int64(n), sums) }
		if err := check(); err != nil {
			t.Errorf("%d bytes: %v", n, err)
		}
		for range min(n, 20) {
			at, bit := off+r.IntN(n), byte(1)<<r.IntN(8)
			b[at] ^= bit
			var d *DamagedError
			if err := check(); !errors.As(err, &d) || int64(at) < d.From || int64(at) >= d.To || d.To-d.From > Block {
				t.Errorf("%d bytes, bit flipped in byte %d: %v", n, at, err)
			}
			b[at] ^= bit
		}
		if n > 0 {
			if err := Check(bytes.NewReader(b[:off+n-1]), off, int64(n), sums); err == nil {
				t.Errorf("%d bytes, one missing: no error", n)
			}
			if err := Check(bytes.NewReader(b), off, int64(n), sums[8:]); err == nil {
				t.Errorf("%d bytes: no error for a checksum less", n)
			}
		}
	}
}

func TestSeal(t *testing.T) {
	a, b := []byte("head"), []byte(`{"x": "`+Zeros+`", "y": 1}`)
	Seal(7, a, b)
	if !Sealed(7, a, b) || bytes.Contains(b, []byte(Zeros)) {
		t.Fatalf("%s", b)
	}
	for _, p := range [][]byte{a, b} {
		for i := range p {
			for bit := range 8 {
				p[i] ^= 1 << bit
				if Sealed(7, a, b) {
					t.Errorf("bit %d of byte %d flipped: %s", bit, i, p)
				}
				p[i] ^= 1 << bit
			}
		}
	}
	if Sealed(len(b)-3, a, b) || Sealed(-1, a, b) {
		t.Error("a seal outside of the text")
	}
}

func BenchmarkCheck(b *testing.B) {
	data := make([]byte, 64<<20)
	sums, _ := Blocks(bytes.NewReader(data), 0, int64(len(data)))
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if err := Check(bytes.NewReader(data), 0, int64(len(data)), sums); err != nil {
			b.Fatal(err)
		}
	}
}
