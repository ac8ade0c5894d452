package cubin

import "fmt"

// A Multiprocessor lists the resources for threads that run at a time, from NVIDIA's table of technical specifications
// by compute capability.
type Multiprocessor struct {
	Warps, Blocks  int
	Registers      int // of 32 bits
	Shared         int // bytes for all blocks together
	SharedReserved int // additional bytes that each block takes
}

// Allocation granularity: registers of a warp, warps by fours, and bytes of shared memory of a block.
const (
	warp          = 32
	registerStep  = 256
	warpStep      = 4
	sharedStep    = 128
	threadsOfCard = 1024 // of a block at most
)

// ByArch is the multiprocessor of an architecture: 90 for sm_90.
func ByArch(arch int) (Multiprocessor, error) {
	m := Multiprocessor{Warps: 64, Blocks: 32, Registers: 64 << 10, SharedReserved: 1 << 10}
	switch arch {
	case 70:
		m.Shared, m.SharedReserved = 96<<10, 0
	case 75:
		m.Warps, m.Blocks, m.Shared, m.SharedReserved = 32, 16, 64<<10, 0
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

// Occupied is the number of warps that a multiprocessor runs at a time, for a kernel with blocks of this many threads
// and dynamic bytes of shared memory. It is 0 if a block does not fit.
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
	if shared := up(k.Shared+dynamic, sharedStep) + m.SharedReserved; shared > 0 {
		blocks = min(blocks, m.Shared/shared)
	}
	return blocks * warps
}

// Occupancy is Occupied as a share of the maximal number of warps.
func (m Multiprocessor) Occupancy(k Kernel, threads, dynamic int) float64 {
	return float64(m.Occupied(k, threads, dynamic)) / float64(m.Warps)
}

func up(n, step int) int { return (n + step - 1) / step * step }
