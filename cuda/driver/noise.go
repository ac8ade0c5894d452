//go:build gpu && cgo

package driver

import (
	"math/rand/v2"
	"sync"
)

// noiseBlock is the number of random elements between -1 and 1 that [Stream.FillNoise] repeats.
const noiseBlock = 1 << 20

var noises = [2]func() []byte{
	sync.OnceValue(func() []byte {
		r := rand.New(rand.NewPCG(1, 2))
		x := make([]float32, noiseBlock/4)
		for i := range x {
			x[i] = 2*r.Float32() - 1
		}
		return Bytes(x)
	}),
	// 16-bit patterns: numbers between 2⁻¹⁰ and 2 and their negatives, in bfloat16 as in float16.
	sync.OnceValue(func() []byte {
		r := rand.New(rand.NewPCG(1, 2))
		x := make([]uint16, noiseBlock/2)
		for i := range x {
			x[i] = uint16(r.Uint32())&0x83ff | 0x3c00 - uint16(r.IntN(4))<<7
		}
		return Bytes(x)
	}),
}

// FillNoise fills dst with random elements, float32 or, with narrow, of 16 bits: timings on zeros are too fast.
func (s *Stream) FillNoise(dst Span, narrow bool) error {
	block := noises[0]()
	if narrow {
		block = noises[1]()
	}
	first := min(dst.Bytes(), noiseBlock)
	if err := s.CopyIn(dst.Span(0, first), block[:first]); err != nil {
		return err
	}
	for done := first; done < dst.Bytes(); {
		n := min(done, dst.Bytes()-done)
		if err := s.Copy(dst.Span(done, n), dst.Span(0, n)); err != nil {
			return err
		}
		done += n
	}
	return nil
}
