package bench

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"onlinerna/internal/hostmemory"
	"onlinerna/internal/simd/convert"
	"onlinerna/internal/text"
	"onlinerna/nn/device"
	"onlinerna/nn/op"
	"onlinerna/rna"
	"onlinerna/train/hook"
	"onlinerna/train/ranks"
	"onlinerna/train/ranks/shard"
)

// A Place is the memory that holds RNA's windows, and the device that computes on it.
type Place struct {
	Name    string // such as "cpu" or "cuda:0"
	Device  string // the processor or the GPU, for display
	Threads int    // computing threads, on the CPU

	Space rna.Space

	// Ranks each keep a part of each vector if the space is theirs; nil for one process.
	Ranks *ranks.Group

	// Weights are in the memory of the space. New iterates are pushed from there, and the extrapolated point is written
	// there.
	Weights rna.Point

	// FromHost are weights in host memory if the space is elsewhere, else nil: the transfer in both directions is measured
	// too, since nets that train on the CPU need it.
	FromHost rna.Point

	// Bandwidth measures the memory bandwidth, in bytes per second.
	Bandwidth func() (float64, error)

	// Free returns the free bytes for windows; 0 if unknown.
	Free func() (int64, error)
}

// usable is the share of the free memory that a measurement may take; the rest is for uncounted use.
const usable = 0.9

// FreeMemory returns the bytes of host memory available without swapping; 0 if unknown.
func FreeMemory() int64 { return hostmemory.Free() }

// mostElements bounds the elements of a vector: more than any memory holds, but safe from overflow.
const mostElements = 1 << 48

// HostPlace is a CPU device with weights of dim float32 elements, and the space that training uses for them. It uses
// the given number of threads, one per core for 0.
func HostPlace(d device.Device, dim, threads int) (*Place, error) {
	if d.DType() != op.Float32 {
		return nil, fmt.Errorf("bench: device %s has %s elements: use one of float32", d.Name(), d.DType())
	}
	if threads <= 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	space, err := hook.NewSpace(d, dim, threads)
	if err != nil {
		return nil, err
	}
	if free := FreeMemory(); dim > mostElements || free > 0 && float64(windowBytes(1, dim)) > usable*float64(free) {
		return nil, fmt.Errorf("bench: a window of 1 residual of vectors of %s elements takes %s, and %s are free",
			text.Thousands(dim), gigabytes(3*4*int64(min(dim, mostElements))), gigabytes(free))
	}
	weights, err := d.NewVector(dim)
	if err != nil {
		return nil, err
	}
	return &Place{
		Name: "cpu", Device: processor(), Threads: threads,
		Space: space, Weights: weights,
		Bandwidth: func() (float64, error) { return readBandwidth(threads), nil },
		Free:      func() (int64, error) { return FreeMemory(), nil },
	}, nil
}

// RanksPlace is a CPU device on each rank with whole weights, and the space that training uses there: a part of each
// vector.
func RanksPlace(g *ranks.Group, d device.Device, dim, threads int) (*Place, error) {
	p, err := HostPlace(d, shard.Largest(dim, g.Size()), threads)
	if err = g.Together(err); err != nil {
		return nil, err
	}
	p.Name, p.Ranks = text.Count(g.Size(), "rank"), g
	if p.Space, err = shard.New(g, dim, 32, func(dim int) (rna.Space, error) { return hook.NewSpace(d, dim, p.Threads) },
		nil); err != nil {
		return nil, err
	}
	weights, err := d.NewVector(dim)
	if err = g.Together(err); err != nil {
		return nil, err
	}
	p.Weights = weights
	p.Free = func() (int64, error) { return FreeMemory() / int64(g.Locals()), nil }
	return p, nil
}

// part returns the maximum number of elements of a vector that this process keeps.
func (p *Place) part() int { return shard.Largest(p.Space.Dim(), p.Ranks.Size()) }

// readElements is the number of elements for measuring the host's bandwidth, larger than caches. Tests reduce it.
var readElements = 64 << 20

// readBandwidth measures the bytes per second that threads read from host memory, the best of several rounds. Each
// thread reads its own part with the kernel that checks new iterates.
func readBandwidth(threads int) (best float64) {
	memory := make([]float32, readElements)
	for i := range memory { // unwritten pages all map to the same one
		memory[i] = 1
	}
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(&memory[0])), 4*len(memory))
	part := len(bytes) / threads &^ 63
	for range triadRounds {
		start := time.Now()
		var wg sync.WaitGroup
		for i := range threads {
			wg.Go(func() { convert.Largest(nil, bytes[i*part:(i+1)*part], convert.Float32, false) })
		}
		wg.Wait()
		best = max(best, float64(threads*part)/time.Since(start).Seconds())
	}
	return best
}

// windowBytes returns the memory of windows of n residuals: their vectors and the weights.
func windowBytes(n, dim int) int64 { return 4 * int64(n+2) * int64(dim) }

// held returns a rank's memory for the vectors of a window of n residuals.
func (p *Place) held(n int) int64 { return 4 * int64(n+1) * int64(p.part()) }

// room splits windows into those that fit and those that do not. The weights are already allocated, and counted.
func (p *Place) room(windows []int) (fit, left []int, free int64, err error) {
	if free, err = p.Free(); err != nil {
		return nil, nil, 0, fmt.Errorf("%s: %w", p.Name, err)
	}
	most := []float64{0}
	for _, n := range windows {
		if free > 0 && float64(p.held(n)+4*int64(p.Space.Dim())) > usable*float64(free) {
			most[0]++
		}
	}
	if err := p.Ranks.Max64(most); err != nil { // of the rank with the least memory
		return nil, nil, 0, err
	}
	k := len(windows) - int(most[0])
	return windows[:k], windows[k:], free, nil
}

// iterateBlock is the number of elements of an iterate per seed.
const iterateBlock = 1 << 18

// iterate writes iterate k of a sequence that is the same at every place.
func iterate(to rna.Sink, k int, seed uint64) error {
	errs := make([]error, runtime.GOMAXPROCS(0))
	var next atomic.Int64
	var wg sync.WaitGroup
	for worker := range errs {
		wg.Go(func() {
			stage := make([]float32, min(to.Len(), iterateBlock))
			for errs[worker] == nil {
				block := int(next.Add(1)) - 1
				off := block * iterateBlock
				if off >= to.Len() {
					return
				}
				part := stage[:min(iterateBlock, to.Len()-off)]
				state := seed*0x9e3779b97f4a7c15 + uint64(k)*0xd1342543de82ef95 + uint64(block)*0xaf251af3b0f025b5 + 1
				for i := range part {
					state = state*6364136223846793005 + 1442695040888963407
					part[i] = float32(int32(state>>32)) / (1 << 31)
				}
				errs[worker] = to.WriteAt(part, off)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
