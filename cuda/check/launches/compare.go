package launches

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"onlinerna/cuda/check/ptx"
)

// A Bound limits the difference of numbers: Relative to the larger one, Scaled relative to the largest number written
// to the same parameter, and Ulps for numbers of 16 bits. The zero value requires equal bits; NaN equals NaN.
type Bound struct {
	Relative, Scaled float64
	Ulps             int
}

// A Result is the result of a comparison.
type Result struct {
	Words, Differ int     // numbers written, and those that differ
	Relative      float64 // the largest difference relative to the larger number
	// the largest difference beyond Bound.Relative, relative to the largest number of its parameter
	Scaled float64
}

// Replay runs a launch with a kernel of PTX and returns the memory afterwards.
func (l *Launch) Replay(k *ptx.Kernel, order ptx.Order) ([]ptx.Block, ptx.Stats, error) {
	var blocks []ptx.Block
	for _, b := range l.Before {
		blocks = append(blocks, ptx.Block{At: b.At, Data: bytes.Clone(b.Data)})
	}
	stats, err := k.Run(ptx.Launch{Blocks: l.Blocks, Threads: l.Threads, Parameters: l.Parameters,
		Memory: ptx.NewMemory(blocks...), Order: order})
	return blocks, stats, err
}

// Same reports whether memory is equal, bit for bit.
func Same(a, b []ptx.Block) bool {
	return slices.EqualFunc(a, b, func(x, y ptx.Block) bool { return bytes.Equal(x.Data, y.Data) })
}

// regions are the places in a block that parameters point to, in ascending order.
func (l *Launch) regions(b ptx.Block) (at []int, types []byte) {
	for i, p := range l.Parameters {
		if l.Types[i] == '-' || l.Types[i] == '.' {
			continue
		}
		if off := binary.LittleEndian.Uint64(p) - b.At; off < uint64(len(b.Data)) {
			j, found := slices.BinarySearch(at, int(off))
			if found {
				continue
			}
			at, types = slices.Insert(at, j, int(off)), slices.Insert(types, j, l.Types[i])
		}
	}
	return at, types
}

// Compare compares memory with the recording. The last parameter that points to a number or before it determines the
// number's type. bfloat16 says that numbers of 16 bits are bfloat16.
func (l *Launch) Compare(got []ptx.Block, bfloat16 bool, bound Bound) (r Result, err error) {
	for i, want := range l.After {
		at, types := l.regions(want)
		at = append([]int{0}, append(at, len(want.Data))...)
		types = append([]byte{'p'}, types...) // type of the bytes before the first parameter
		for j := range types {
			from, to := at[j], at[j+1]
			c := comparison{bound: bound, kind: types[j], bfloat16: bfloat16, before: l.Before[i].Data[from:to],
				want: want.Data[from:to], got: got[i].Data[from:to]}
			if place, e := c.run(&r); e != nil {
				return r, fmt.Errorf("block %d of memory, byte %d, %d bytes after the place of a parameter of type "+
					"%c: %w", i, from+place, place, types[j], e)
			}
		}
	}
	return r, nil
}

// A comparison compares consecutive numbers of one type.
type comparison struct {
	bound             Bound
	kind              byte
	bfloat16          bool
	before, want, got []byte
}

func (c *comparison) run(r *Result) (place int, err error) {
	if bytes.Equal(c.before, c.want) && bytes.Equal(c.want, c.got) {
		return 0, nil
	}
	size := map[byte]int{'f': 4, 'd': 8, 'h': 2, 'p': 1}[c.kind]
	var largest float64
	for i := 0; i+size <= len(c.want); i += size {
		if !bytes.Equal(c.before[i:i+size], c.want[i:i+size]) {
			r.Words++
			if v := math.Abs(c.value(c.want[i:])); v > largest && !math.IsInf(v, 0) {
				largest = v
			}
		}
	}
	for i := 0; i < len(c.want); i += size {
		n := min(size, len(c.want)-i)
		if bytes.Equal(c.want[i:i+n], c.got[i:i+n]) {
			continue
		}
		if n < size || c.kind == 'p' {
			r.Differ++
			return i, fmt.Errorf("%x, want %x", c.got[i:i+n], c.want[i:i+n])
		}
		a, b := c.value(c.got[i:]), c.value(c.want[i:])
		if a != a && b != b {
			continue
		}
		r.Differ++
		d, most := math.Abs(a-b), max(math.Abs(a), math.Abs(b))
		allowed := c.bound.Relative * most
		if c.kind == 'h' {
			allowed += float64(c.bound.Ulps) * c.ulp(most)
		}
		if math.IsInf(most, 0) || d != d {
			return i, fmt.Errorf("%g, want %g", a, b)
		}
		r.Relative = max(r.Relative, d/most)
		if d > allowed {
			r.Scaled = max(r.Scaled, (d-allowed)/largest)
		}
		if d > allowed+c.bound.Scaled*largest {
			return i, fmt.Errorf("%g, want %g; the largest is %g", a, b, largest)
		}
	}
	return 0, nil
}

// value reads a number from memory.
func (c *comparison) value(b []byte) float64 {
	switch c.kind {
	case 'f':
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	case 'd':
		return math.Float64frombits(binary.LittleEndian.Uint64(b))
	case 'h':
		x := uint64(binary.LittleEndian.Uint16(b))
		if c.bfloat16 {
			return ptx.FromBFloat16(x)
		}
		return ptx.FromFloat16(x)
	}
	return 0
}

// ulp is a unit in the last place of a 16-bit number.
func (c *comparison) ulp(x float64) float64 {
	_, e := math.Frexp(x)
	if c.bfloat16 {
		return math.Ldexp(1, max(e-8, -133))
	}
	return math.Ldexp(1, max(e-11, -24))
}
