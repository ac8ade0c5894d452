package kern

import (
	"math/rand/v2"
	"testing"
)

// codes assigns the values below 1<<bits to prefix codes of random lengths, a few of them to none.
func codes(rng *rand.Rand, bits int, put func(lo, hi, length int)) {
	for lo := 0; lo < 1<<bits; {
		length := 1 + rng.IntN(bits)
		for lo&(1<<(bits-length)-1) != 0 || length < bits && rng.IntN(3) > 0 {
			length = min(length+1, bits)
		}
		if rng.IntN(16) > 0 {
			put(lo, lo+1<<(bits-length), length)
		}
		lo += 1 << (bits - length)
	}
}

func TestBlockAndSkip(t *testing.T) {
	each(t, func(t *testing.T, set *Set, rng *rand.Rand) {
		long, blocks := 0, 0
		for range 200 {
			var first Firsts
			codes(rng, FirstBits, func(lo, hi, length int) {
				size := rng.IntN(16)
				for i := lo; i < hi; i++ {
					first[i] = uint16(length | size<<8)
				}
			})
			var list [1 << LookBits]Symbol
			codes(rng, LookBits, func(lo, hi, length int) {
				s := Symbol{uint8(length), uint8(rng.IntN(1 + rng.IntN(16))), uint8(1 + rng.IntN(1+rng.IntN(16)))}
				if s.Size == 0 && s.Advance != 16 {
					s.Advance = EndOfBlock
				}
				for i := lo; i < hi; i++ {
					list[i] = s
				}
			})
			var rest Symbols
			var runs Runs
			rest.Make(&list)
			runs.Make(&list)
			data := append(noise(rng, 3000), make([]byte, Pad)...)
			begin := Bits{Data: data}
			begin.Fill()
			predicted := int32(rng.IntN(100))
			for k := -1; !begin.Overrun(); {
				a, b, c, d := begin, begin, begin, begin
				pa, pb, pc, pd := predicted, predicted, predicted, predicted
				var got, want [Room]int16
				ka, kb := set.Block(&a, &first, &rest, &got, &pa, k), block(&b, &first, &rest, &want, &pb, k)
				position := func(r *Bits) int { return 8*r.At - r.N }
				if ka != kb || pa != pb || position(&a) != position(&b) || [64]int16(got[:64]) != [64]int16(want[:64]) {
					t.Fatalf("from %d: k %d, first %d, bit %d, %v; want %d, %d, %d, %v", k, ka, pa, position(&a), got,
						kb, pb, position(&b), want)
				}
				kc, kd := set.Skip(&c, &first, &rest, &runs, &pc, k), skip(&d, &first, &rest, &runs, &pd, k)
				for i, other := range []struct {
					k    int
					pred int32
					r    *Bits
				}{{kc, pc, &c}, {kd, pd, &d}} {
					if other.pred != pb || position(other.r) != position(&b) || other.k != kb &&
						(other.k < EndOfBlock || kb < EndOfBlock) {
						t.Fatalf("skip %d from %d: k %d, first %d, bit %d; want %d, %d, %d", i, k, other.k, other.pred,
							position(other.r), kb, pb, position(&b))
					}
				}
				begin, predicted = b, pb
				switch {
				case ka >= 0:
					blocks++
					k = -1
				default: // a long code
					long++
					begin.Acc <<= 13
					if begin.N -= 13; begin.N < 32 {
						begin.Fill()
					}
					if k = 0; !LongFirst(ka) {
						k = min(^ka+2, 63)
					}
				}
			}
		}
		if long < 1000 || blocks < 10000 {
			t.Errorf("%d blocks and %d long codes", blocks, long)
		}
	})
}
