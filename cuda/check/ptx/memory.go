package ptx

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// A Memory is a device's memory: blocks at addresses.
type Memory struct {
	blocks []Block
	zeros  []byte // of places outside the blocks; nil if these are faults
}

// A Block is an allocation with the address of its first byte.
type Block struct {
	At   uint64
	Data []byte
}

// NewMemory makes memory from blocks that do not overlap. Kernels write to their data.
func NewMemory(blocks ...Block) *Memory {
	m := &Memory{blocks: slices.Clone(blocks)}
	slices.SortFunc(m.blocks, func(a, b Block) int {
		if a.At < b.At {
			return -1
		}
		return 1
	})
	return m
}

// NewZeros makes memory that holds the blocks and zeros everywhere else. It drops writes outside the blocks.
func NewZeros(blocks ...Block) *Memory {
	m := NewMemory(blocks...)
	m.zeros = make([]byte, 64)
	return m
}

// Start of the generic addresses of shared and of local memory, out of reach of allocations.
const (
	sharedWindow = 0xff01 << 48
	localWindow  = 0xff02 << 48
)

// at returns n bytes of memory.
func (m *Memory) at(p uint64, n int) []byte {
	for i := range m.blocks {
		b := &m.blocks[i]
		if off := p - b.At; off < uint64(len(b.Data)) && uint64(len(b.Data))-off >= uint64(n) {
			return b.Data[off : off+uint64(n)]
		}
	}
	if m.zeros != nil {
		clear(m.zeros)
		return m.zeros[:n]
	}
	panic(&Fault{Why: fmt.Sprintf("%d bytes at %#x: %s", n, p, m.near(p))})
}

// near describes the surroundings of an address.
func (m *Memory) near(p uint64) string {
	for i, b := range slices.Backward(m.blocks) {
		if p < b.At {
			continue
		}
		if past := p - b.At - uint64(len(b.Data)); p-b.At >= uint64(len(b.Data)) {
			return fmt.Sprintf("%d bytes past the end of %d bytes at %#x, number %d", past, len(b.Data), b.At, i)
		}
		return fmt.Sprintf("across the end of %d bytes at %#x, number %d", len(b.Data), b.At, i)
	}
	return "before all memory"
}

// A touch records the last access to a piece of shared memory: by a thread, by several threads of a warp, or by several
// warps; and the number of barriers that the block and, if there is only one, the warp had passed.
type touch struct {
	thread, warp int32 // -1 for several
	block, meet  uint32
}

// before reports whether a barrier lies between a touch and a thread.
func (o touch) before(t *thread, barriers uint32) bool {
	return o.block != barriers || o.thread == int32(t.index) || o.warp == t.warp.index && o.meet != t.warp.meets
}

func (o touch) String() string {
	if o.thread < 0 {
		return "several threads"
	}
	return fmt.Sprintf("thread %d", o.thread)
}

type use uint8

const (
	reads use = iota
	writes
	updates // atomic
)

// A sharedMemory is the shared memory of the running block. Accesses to the same piece by several threads, at least one
// of them a write, without a barrier in between are a race, except atomic operations.
type sharedMemory struct {
	data     []byte
	pieces   []piece
	grain    uint   // log₂ of a piece's bytes
	barriers uint32 // of all blocks so far; a block starts after one
	block    uint32 // number of blocks so far
}

type piece struct {
	written, read touch
	block         uint32 // the block that wrote it
}

func newShared(bytes int, grain uint) sharedMemory {
	return sharedMemory{data: make([]byte, bytes), pieces: make([]piece, bytes>>grain+1), grain: grain}
}

func (s *sharedMemory) start() {
	for i := range s.data {
		s.data[i] = 0xff
	}
	s.block++
	s.barriers++
}

// access returns n bytes at an address, for a thread.
func (s *sharedMemory) access(t *thread, p uint64, n int, u use) []byte {
	if p >= uint64(len(s.data)) || uint64(len(s.data))-p < uint64(n) {
		panic(&Fault{Why: fmt.Sprintf("%d bytes at %#x of %d bytes of shared memory", n, p, len(s.data))})
	}
	me := touch{int32(t.index), t.warp.index, s.barriers, t.warp.meets}
	for g := p >> s.grain; g <= (p+uint64(n)-1)>>s.grain; g++ {
		w := &s.pieces[g]
		if u != updates && !w.written.before(t, s.barriers) {
			panic(&Fault{Why: fmt.Sprintf("a race: byte %d of shared memory was written by %v since the last barrier",
				p, w.written)})
		}
		if u != writes && w.block != s.block {
			panic(&Fault{Why: fmt.Sprintf("byte %d of shared memory is read, and no thread of the block has written it",
				p)})
		}
		switch u {
		case reads:
			if r := &w.read; r.before(t, s.barriers) {
				*r = me
			} else {
				r.thread = -1
				if r.warp != me.warp {
					r.warp = -1
				}
			}
			continue
		case writes:
			if !w.read.before(t, s.barriers) {
				panic(&Fault{Why: fmt.Sprintf("a race: byte %d of shared memory is written, and was read by %v "+
					"since the last barrier", p, w.read)})
			}
			w.written = me
		}
		w.block = s.block
	}
	return s.data[p : p+uint64(n)]
}

// find returns n bytes at an address in a space.
func (b *block) find(t *thread, s space, p uint64, n int, u use) []byte {
	if p&uint64(n-1) != 0 {
		panic(&Fault{Why: fmt.Sprintf("%d bytes at %#x, which is not a multiple of them", n, p)})
	}
	if s == generic {
		switch p >> 48 << 48 {
		case sharedWindow:
			s, p = shared, p-sharedWindow
		case localWindow:
			s, p = local, p-localWindow
		}
	}
	switch s {
	case shared:
		return b.shared.access(t, p, n, u)
	case local:
		if p >= uint64(len(t.local)) || uint64(len(t.local))-p < uint64(n) {
			panic(&Fault{Why: fmt.Sprintf("%d bytes at %#x of %d bytes of local memory", n, p, len(t.local))})
		}
		return t.local[p : p+uint64(n)]
	}
	return b.memory.at(p, n)
}

func load(from []byte) uint64 {
	switch len(from) {
	case 1:
		return uint64(from[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(from))
	case 4:
		return uint64(binary.LittleEndian.Uint32(from))
	}
	return binary.LittleEndian.Uint64(from)
}

func store(to []byte, v uint64) {
	switch len(to) {
	case 1:
		to[0] = byte(v)
	case 2:
		binary.LittleEndian.PutUint16(to, uint16(v))
	case 4:
		binary.LittleEndian.PutUint32(to, uint32(v))
	default:
		binary.LittleEndian.PutUint64(to, v)
	}
}

// atomics compute the stored value from the old one and the operands.
var atomics = map[string]function{}

func init() {
	for _, kind := range []string{"b32", "b64"} {
		atomics["exch."+kind] = func(_, b, _ uint64) uint64 { return b }
		atomics["cas."+kind] = func(a, b, c uint64) uint64 {
			if a == b {
				return c
			}
			return a
		}
		for _, op := range []string{"and", "or", "xor"} {
			atomics[op+"."+kind] = operations[op+"."+kind].fn
		}
	}
	for _, kind := range []string{"u32", "s32", "u64", "s64"} {
		for _, op := range []string{"add", "min", "max"} {
			atomics[op+"."+kind] = operations[op+"."+kind].fn
		}
	}
	for _, kind := range []string{"f32", "f64"} {
		atomics["add."+kind] = operations["add."+kind].fn
	}
	atomics["inc.u32"] = func(a, b, _ uint64) uint64 {
		if a >= b {
			return 0
		}
		return a + 1
	}
	atomics["dec.u32"] = func(a, b, _ uint64) uint64 {
		if a == 0 || a > b {
			return b
		}
		return a - 1
	}
}
