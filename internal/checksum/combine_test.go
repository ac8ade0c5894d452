package checksum

import (
	"hash/crc32"
	"math/rand/v2"
	"testing"
)

// Checksums of parts, added in any order, are those of the whole.
func TestSum(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, 5000)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	for _, p := range []uint32{crc32.Castagnoli, crc32.IEEE} {
		s := NewSum(p)
		cuts := []int{0, 1, 8, 9, 1000, 1001, 4097, 4999, 5000}
		for _, i := range r.Perm(len(cuts) - 1) {
			part := b[cuts[i]:cuts[i+1]]
			s.Add(int64(cuts[i]), int64(len(part)), Part(p, part))
		}
		for i := range cuts {
			for j := range i {
				if got, ok := s.Of(int64(cuts[j]), int64(cuts[i])); !ok ||
					got != crc32.Checksum(b[cuts[j]:cuts[i]], crc32.MakeTable(p)) {
					t.Errorf("bytes %d to %d: %08x, %v", cuts[j], cuts[i], got, ok)
				}
			}
		}
		if _, ok := s.Of(2, 8); ok {
			t.Error("a part that was not added has a checksum")
		}
	}
}
