package cubin

import "fmt"

// A Multiprocessor is what one has for the threads that run on it at a time: NVIDIA's table of technical specifications by compute
// capability.
type Multiprocessor struct {
	Warps, Blocks  int
	Registers      int // of 32 bits
	Shared         int // bytes, all that blocks may have together
	SharedReserved int // bytes, that each block takes on top
}

// Registers are given to a warp in steps of so many, and to warps by fours; shared memory to a block in steps of bytes.
const (
	warp          = 32
	registerStep  = 256
	warpStep      = 4
	sharedStep    = 128
	threadsOfCard = 1024 // of a block at most
)

// ByArch is the multiprocessor of an architecture, as 90 for sm_90.
func ByArch(arch int) (Multiprocessor, error) {
	m := Multiprocessor{Warps: 64, Blocks: 32, Registers: 64 << 10, SharedReserved: 1 << 10}
	switch arch {
	case 80:
		m.Shared = 164 << 10
	case 86, 89:
		m.Warps, m.Blocks, m.Shared = 48, 24, 100<<10
		if arch == 86 {
			m.Blocks = 16
		}
	case 90, 100, 103:
		m.Shared = 228 << 10
	case 120, 121:
		m.Warps, m.Blocks, m.Shared = 48, 24, 100<<10
	default:
		return m, fmt.Errorf("cubin: sm_%d is not in the table of multiprocessors", arch)
	}
	return m, nil
}

// Occupied is how many warps of a kernel in blocks of so many threads, with dynamic bytes of shared memory, a multiprocessor runs at a
// time. It is 0 where a block does not fit.
func (m Multiprocessor) Occupied(k Kernel, threads, dynamic int) int {
	if threads < 1 || threads > threadsOfCard || k.Threads > 0 && threads > k.Threads {
		return 0
	}
	warps := (threads + warp - 1) / warp
	blocks := min(m.Blocks, m.Warps/warps)
	if k.Registers > 0 {
		each := up(k.Registers*warp, registerStep)
		blocks = min(blocks, m.Registers/each/warpStep*warpStep/warps)
	}
	blocks = min(blocks, m.Shared/(up(k.Shared+dynamic, sharedStep)+m.SharedReserved))
	return blocks * warps
}

// Occupancy is Occupied as a share of all warps that there can be.
func (m Multiprocessor) Occupancy(k Kernel, threads, dynamic int) float64 {
	return float64(m.Occupied(k, threads, dynamic)) / float64(m.Warps)
}

func up(n, step int) int { return (n + step - 1) / step * step }
