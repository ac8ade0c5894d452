package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"onlinerna/internal/text"
	"onlinerna/train/ranks"
)

// CommOptions say which sums over ranks are measured.
type CommOptions struct {
	Ranks    *ranks.Group
	Min, Max int // bytes of the smallest and the largest vector
	Rounds   int // in which each size is measured, each way in turn; default 5
}

// CommResult is a measurement of sums over ranks.
type CommResult struct {
	Engine string     `json:"engine"`
	Ranks  int        `json:"ranks"`
	Nodes  int        `json:"nodes"`
	Load   float64    `json:"load,omitempty"`
	Sizes  []CommSize `json:"sizes"`
}

// CommSize is what the sum of vectors of a size takes.
type CommSize struct {
	Bytes int    `json:"bytes"`
	Sum   Spread `json:"seconds"`         // as training does it
	Plain Spread `json:"plain,omitempty"` // by the library's own blocking call; 0 where there is none
	Wrong int    `json:"wrong"`           // elements of all ranks that are not the sum
}

// Bus is the bandwidth that each of R ranks would need of a bus, for an all-reduce that moves as little as possible: 2(R−1)/R times the bytes
// over the time, in bytes a second, as nccl-tests define it.
func (r *CommResult) Bus(bytes int, seconds float64) float64 {
	return float64(bytes) / seconds * 2 * float64(r.Ranks-1) / float64(r.Ranks)
}

// RunComm measures sums over the ranks. All ranks call it with equal options and get what rank 0 has measured.
func RunComm(ctx context.Context, o CommOptions) (*CommResult, error) {
	g := o.Ranks
	if o.Rounds == 0 {
		o.Rounds = 5
	}
	switch {
	case g.Single():
		return nil, errors.New("bench: sums over ranks: there is one process only, start several with mpirun or srun")
	case o.Min < 4 || o.Max < o.Min || o.Rounds < 1:
		return nil, fmt.Errorf("bench: sums of %d to %d bytes in %d rounds: at least 4 bytes and a round", o.Min, o.Max, o.Rounds)
	}
	r := &CommResult{Engine: g.Engine(), Ranks: g.Size(), Nodes: g.Nodes()}
	ours := func(x []float32) error { return g.Sum32(x).Wait() }
	var plain func(x []float32) error
	if p := g.Plain(); p != nil {
		plain = p.PlainSum32
	}
	for bytes := o.Min; bytes <= o.Max; bytes *= 4 {
		x := make([]float32, bytes/4)
		s := CommSize{Bytes: 4 * len(x)}
		var times [2][]float64
		times1 := func(k int, sum func([]float32) error) error {
			if sum == nil {
				return nil
			}
			t, wrong, err := sums(g, x, sum)
			times[k], s.Wrong = append(times[k], t...), s.Wrong+wrong
			return err
		}
		for range o.Rounds {
			if err := errors.Join(ctx.Err(), times1(0, ours), times1(1, plain)); err != nil {
				return nil, err
			}
		}
		wrong := []float64{float64(s.Wrong)}
		if err := g.Sum64(wrong).Wait(); err != nil {
			return nil, err
		}
		s.Sum, s.Wrong = spread(times[0]), int(wrong[0])
		if plain != nil {
			s.Plain = spread(times[1])
		}
		r.Sizes = append(r.Sizes, s)
	}
	r.Load = loadAverage()
	return r, g.Share(r)
}

// sums times sums of x, as many on all ranks, and counts wrong elements after the first.
func sums(g *ranks.Group, x []float32, sum func([]float32) error) (times []float64, wrong int, err error) {
	const work = 1 << 24 // bytes of a measurement
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
	var b strings.Builder
	fmt.Fprintf(&b, "sums over %s on %s, %s", count(r.Ranks, "rank"), count(r.Nodes, "node"), r.Engine)
	if r.Load > 0 {
		fmt.Fprintf(&b, "; load %.1f", r.Load)
	}
	b.WriteString("\n\n")
	rows := [][]string{{"bytes", "float32", "ms", "GB/s", "bus GB/s", "wrong", "plain ms", "bus GB/s", "of plain"}}
	for _, s := range r.Sizes {
		t := s.Sum.Median
		row := []string{thousands(s.Bytes), thousands(s.Bytes / 4), text.Number(1e3 * t), text.Number(float64(s.Bytes) / t / 1e9), text.Number(r.Bus(s.Bytes, t) / 1e9), fmt.Sprint(s.Wrong)}
		if p := s.Plain.Median; p > 0 {
			row = append(row, text.Number(1e3*p), text.Number(r.Bus(s.Bytes, p)/1e9), text.Percent(p/t))
		}
		rows = append(rows, row)
	}
	b.WriteString(text.Table(rows))
	b.WriteString("\nms: medians, as training sums gradients; plain: MPI_Allreduce, which blocks; bus: times 2(R−1)/R, what a ring needs of each link;\nof plain: its time over the sum's\n")
	_, err := io.WriteString(w, b.String())
	return err
}
