package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"onlinerna/internal/terminal"
	"onlinerna/internal/text"
	"onlinerna/nn/device"
	"onlinerna/train/ranks"
	"onlinerna/train/ranks/reduce"
)

// CommOptions configure a measurement of sums over ranks.
type CommOptions struct {
	Ranks *ranks.Group
	// Device holds the vectors and sums them if it has joined those of the other ranks; nil for host memory.
	Device   device.Device
	Min, Max int // bytes of the smallest and the largest vector
	Rounds   int // rounds per size, each way in turn; default 5
}

// CommResult is a measurement of sums over ranks.
type CommResult struct {
	Engine string     `json:"engine"`
	Device string     `json:"device,omitempty"` // "" for host memory
	Ranks  int        `json:"ranks"`
	Nodes  int        `json:"nodes"`
	Load   float64    `json:"load,omitempty"`
	Sizes  []CommSize `json:"sizes"`
}

// CommSize holds the times of sums of vectors of one size.
type CommSize struct {
	Bytes int    `json:"bytes"`
	Sum   Spread `json:"seconds"`         // as training does it
	Plain Spread `json:"plain,omitempty"` // by the library's own blocking call; 0 without one
	Wrong int    `json:"wrong"`           // wrong elements over all ranks
}

// Bus returns the bus bandwidth that each of R ranks needs for an all-reduce with minimal traffic, in bytes per second:
// 2(R−1)/R times the bytes over the time, as nccl-tests define it.
func (r *CommResult) Bus(bytes int, seconds float64) float64 {
	return float64(bytes) / seconds * 2 * float64(r.Ranks-1) / float64(r.Ranks)
}

// RunComm measures sums over the ranks. All ranks call it with equal options and get rank 0's measurements.
func RunComm(ctx context.Context, o CommOptions) (*CommResult, error) {
	g := o.Ranks
	if o.Rounds == 0 {
		o.Rounds = 5
	}
	switch {
	case g.Single():
		return nil, errors.New("bench: sums over ranks: there is one process only: start several with mpirun or srun, or " +
			"name several GPUs, as --device cuda:all does where there are")
	case o.Min < 4 || o.Max < o.Min || o.Rounds < 1:
		return nil, fmt.Errorf("bench: sums of %d to %d bytes in %d rounds: at least 4 bytes and a round", o.Min, o.Max,
			o.Rounds)
	}
	r := &CommResult{Engine: g.Engine(), Ranks: g.Size(), Nodes: g.Nodes()}
	measure := onHost
	if d, ok := device.As[device.Collective](o.Device); ok && d.Ranks() != nil {
		v, err := o.Device.NewVector(o.Max / 4)
		if err = g.Together(err); err != nil {
			return nil, err
		}
		defer v.Free()
		r.Device = o.Device.Name()
		measure = func(ctx context.Context, o CommOptions, n int) (CommSize, error) { return onDevice(ctx, o, v, n) }
	}
	for bytes := o.Min; bytes <= o.Max; bytes *= 4 {
		s, err := measure(ctx, o, bytes/4)
		if err != nil {
			return nil, err
		}
		wrong := []float64{float64(s.Wrong)}
		if err := g.Sum64(wrong).Wait(); err != nil {
			return nil, err
		}
		s.Wrong = int(wrong[0])
		r.Sizes = append(r.Sizes, s)
	}
	r.Load = loadAverage()
	return r, g.Share(r)
}

// onHost measures sums of n elements in the host's memory, each way in turn.
func onHost(ctx context.Context, o CommOptions, n int) (s CommSize, err error) {
	g := o.Ranks
	x := make([]float32, n)
	s.Bytes = 4 * n
	ways := []func(x []float32) error{func(x []float32) error { return g.Sum32(x).Wait() }}
	if p := g.Plain(); p != nil {
		ways = append(ways, p.PlainSum32)
	}
	times := make([][]float64, 2)
	for range o.Rounds {
		for k, sum := range ways {
			t, wrong, err := sums(g, x, sum)
			if err = errors.Join(ctx.Err(), err); err != nil {
				return s, err
			}
			times[k], s.Wrong = append(times[k], t...), s.Wrong+wrong
		}
	}
	s.Sum = spread(times[0])
	if len(ways) > 1 {
		s.Plain = spread(times[1])
	}
	return s, nil
}

// onDevice measures sums of the first n elements of a vector in the memory of the ranks' devices: like nccl-tests, it
// issues many in sequence and divides the time by their number.
func onDevice(ctx context.Context, o CommOptions, v device.Vector, n int) (s CommSize, err error) {
	g, d := o.Ranks, o.Device
	s.Bytes = 4 * n
	reducer := reduce.New(g, d)
	sum := func(times int) (float64, error) {
		if err := errors.Join(ctx.Err(), d.Sync(), g.Barrier()); err != nil {
			return 0, err
		}
		start := time.Now()
		for range times {
			if err := reducer.Sum(v, device.Span{Len: n}); err != nil {
				return 0, err
			}
		}
		err := errors.Join(reducer.Wait(), d.Sync())
		return time.Since(start).Seconds() / float64(times), err
	}
	x := make([]float64, n)
	for i := range x {
		x[i] = float64((g.Rank() + 1) * (1 + i%7))
	}
	if err := v.WriteAt64(x, 0); err != nil {
		return s, err
	}
	if _, err := sum(1); err != nil { // makes connections
		return s, err
	}
	if err := v.ReadAt64(x, 0); err != nil {
		return s, err
	}
	want := g.Size() * (g.Size() + 1) / 2
	for i, a := range x {
		if a != float64(want*(1+i%7)) {
			s.Wrong++
		}
	}
	if err := v.Fill(0); err != nil { // repeated sums would overflow
		return s, err
	}
	var times []float64
	for range o.Rounds {
		t, err := sum(min(max(work/(4*n), 3), 200))
		if err != nil {
			return s, err
		}
		times = append(times, t)
	}
	s.Sum = spread(times)
	return s, nil
}

// work is the number of bytes per measurement.
const work = 1 << 24

// sums times sums of x, the same number on all ranks, and counts wrong elements after the first.
func sums(g *ranks.Group, x []float32, sum func([]float32) error) (times []float64, wrong int, err error) {
	n := min(max(work/(4*len(x)), 3), 200)
	want := 0
	for k := range g.Size() {
		want += k + 1
	}
	for k := range n + 1 {
		for i := range x {
			x[i] = float32((g.Rank() + 1) * (1 + i%7))
		}
		if err := g.Barrier(); err != nil {
			return nil, 0, err
		}
		start := time.Now()
		if err := sum(x); err != nil {
			return nil, 0, err
		}
		took := time.Since(start).Seconds()
		if k > 0 { // the first one makes connections
			times = append(times, took)
			continue
		}
		for i, v := range x {
			if v != float32(want*(1+i%7)) {
				wrong++
			}
		}
	}
	return times, wrong, nil
}

// WriteTable writes r for people, in the columns of nccl-tests.
func (r *CommResult) WriteTable(w io.Writer) error {
	b := terminal.NewPage(w)
	fmt.Fprintf(b, "sums over %s on %s, %s", text.Count(r.Ranks, "rank"), text.Count(r.Nodes, "node"), r.Engine)
	if r.Load > 0 {
		fmt.Fprintf(b, "; load %.1f", r.Load)
	}
	b.WriteString("\n\n")
	rows := [][]string{{"bytes", "float32", "ms", "GB/s", "bus GB/s", "wrong"}}
	plain := len(r.Sizes) > 0 && r.Sizes[0].Plain.Median > 0
	if plain {
		rows[0] = append(rows[0], "plain ms", "bus GB/s", "of plain")
	}
	for _, s := range r.Sizes {
		t := s.Sum.Median
		row := []string{text.Thousands(s.Bytes), text.Thousands(s.Bytes / 4), text.Number(1e3 * t),
			text.Number(float64(s.Bytes) / t / 1e9), text.Number(r.Bus(s.Bytes, t) / 1e9), fmt.Sprint(s.Wrong)}
		if p := s.Plain.Median; p > 0 {
			row = append(row, text.Number(1e3*p), text.Number(r.Bus(s.Bytes, p)/1e9), text.Percent(p/t))
		}
		rows = append(rows, row)
	}
	b.Table(rows)
	how := "as training sums gradients"
	if r.Device != "" {
		how = "of sums one behind the other, over their number, beside no other work"
	}
	fmt.Fprintf(b, "\nms: medians, %s; bus: times 2(R−1)/R, the need of a ring of each link", how)
	if plain {
		b.WriteString(";\nplain: MPI_Allreduce, which blocks; of plain: its time over the sum's")
	}
	b.WriteString("\n")
	return b.Flush(w)
}
