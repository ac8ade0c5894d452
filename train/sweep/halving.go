package sweep

import (
	"cmp"
	"container/heap"
	"context"
	"math"
	"slices"

	"onlinerna/internal/stat"
)

// A Value is the score of a candidate with one seed; lower is better. It is infinite if the run diverged.
type Value struct {
	Main float64 // the error or the loss by which runs choose their best weights
	Tie  float64 // the loss, which decides between equal means of Main
}

// Halving is asynchronous successive halving, ASHA (Li et al., 2020): candidates train to the first rung, and the
// best 1/Eta of the arrivals at a rung go on to the next. With several seeds, a candidate also goes on unless the
// paired t test shows at the level of 5 % that it is worse than the last of these.
//
// The order of arrivals is that of Width workers for which each epoch takes the same time. So the candidates that go on
// depend neither on the speed of runs nor on interruptions.
type Halving struct {
	Rungs []int // epochs, rising; the last is the whole run
	Eta   int   // 0: candidates go on in any case
	Width int
	// Propose, if not nil, is called before a candidate starts, with each candidate's last arrival, nil for none.
	Propose func(candidate int, last []*arrival)
}

// rungs returns the epochs at which candidates are compared: the whole run, divided by eta up to three times but not
// below first epochs, or from there on if first is not 0.
func rungs(epochs, eta, first int) []int {
	list := []int{epochs}
	if eta == 0 {
		return list
	}
	for k, e := 1, float64(epochs); first > 0 || k <= 3; k++ {
		e /= float64(eta)
		next := int(math.Ceil(e - 1e-9))
		if next >= list[0] || next < max(first, 1) {
			break
		}
		list = append([]int{next}, list...)
	}
	if 0 < first && first < list[0] {
		list = append([]int{first}, list...)
	}
	return list
}

// arrival is a candidate that is on its way to a rung, or has arrived.
type arrival struct {
	candidate, rung int
	at              int // virtual time
	order           int // among those of the same time
	values          []Value
}

type queue []*arrival

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(q[i].at, q[j].at), cmp.Compare(q[i].order, q[j].order)) < 0
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(*arrival)) }
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// Decide trains n candidates, 0 to n − 1. start begins to train one to a rung's epochs, and the function that it
// returns waits for the candidate's values by seed. reached has the last rung at which each candidate arrived.
func (h *Halving) Decide(ctx context.Context, n int, start func(candidate, epochs int) (wait func() ([]Value, error))) (
	reached []int, err error) {
	reached = make([]int, n)
	arrived := make([][]*arrival, len(h.Rungs))
	type key struct{ candidate, rung int }
	seen := map[key]bool{}
	begun := func(candidate, rung int) bool { return seen[key{candidate, rung}] }
	waits := map[*arrival]func() ([]Value, error){}
	var q queue
	next, now, order := 0, 0, 0
	for {
		for len(q) < h.Width {
			a := h.promotable(arrived, begun)
			if a == nil && next < n {
				a = &arrival{candidate: next}
				if h.Propose != nil {
					h.Propose(next, lastArrivals(arrived, next))
				}
				next++
			}
			if a == nil && len(q) == 0 {
				a = h.winner(arrived, begun)
			}
			if a == nil {
				break
			}
			cost := h.Rungs[a.rung]
			if a.rung > 0 {
				cost -= h.Rungs[a.rung-1]
			}
			a.at, a.order = now+cost, order
			order++
			seen[key{a.candidate, a.rung}] = true
			waits[a] = start(a.candidate, h.Rungs[a.rung])
			heap.Push(&q, a)
		}
		if len(q) == 0 {
			return reached, ctx.Err()
		}
		a := heap.Pop(&q).(*arrival)
		if a.values, err = waits[a](); err != nil {
			return reached, err
		}
		delete(waits, a)
		now = a.at
		arrived[a.rung] = append(arrived[a.rung], a)
		reached[a.candidate] = a.rung
	}
}

// lastArrivals lists the last arrival of each of n candidates, nil for those that have not arrived.
func lastArrivals(arrived [][]*arrival, n int) []*arrival {
	last := make([]*arrival, n)
	for _, list := range arrived { // the highest rung is the last
		for _, a := range list {
			last[a.candidate] = a
		}
	}
	return last
}

// promotable returns a candidate that may go on, on its way to the next rung, nil for none: those of the highest rung
// first, the best first.
func (h *Halving) promotable(arrived [][]*arrival, begun func(candidate, rung int) bool) *arrival {
	if h.Eta == 0 {
		return nil
	}
	for rung := len(h.Rungs) - 2; rung >= 0; rung-- {
		list := slices.SortedFunc(slices.Values(arrived[rung]), compare)
		top := len(list) / h.Eta
		for i, a := range list {
			if top == 0 || math.IsInf(mean(a.values).Main, 1) {
				break
			}
			if (i < top || !worse(a.values, list[top-1].values)) && !begun(a.candidate, rung+1) {
				return &arrival{candidate: a.candidate, rung: rung + 1}
			}
		}
	}
	return nil
}

// winner returns the best candidate of the highest rung that may go on, if none has arrived at the last rung: too few
// arrived below, or too many diverged.
func (h *Halving) winner(arrived [][]*arrival, begun func(candidate, rung int) bool) *arrival {
	last := len(h.Rungs) - 1
	if len(arrived[last]) > 0 {
		return nil
	}
	for rung := last - 1; rung >= 0; rung-- {
		for _, a := range slices.SortedFunc(slices.Values(arrived[rung]), compare) {
			if !math.IsInf(mean(a.values).Main, 1) && !begun(a.candidate, rung+1) {
				return &arrival{candidate: a.candidate, rung: rung + 1}
			}
		}
	}
	return nil
}

// compare orders candidates, the best first.
func compare(a, b *arrival) int {
	x, y := mean(a.values), mean(b.values)
	return cmp.Or(cmp.Compare(x.Main, y.Main), cmp.Compare(x.Tie, y.Tie), cmp.Compare(a.candidate, b.candidate))
}

// mean is the mean of values over seeds.
func mean(values []Value) (m Value) {
	for _, v := range values {
		m.Main += v.Main / float64(len(values))
		m.Tie += v.Tie / float64(len(values))
	}
	return m
}

// worse reports whether a candidate below the cutoff stops: always with one seed, else if its values are above those
// of the last candidate above the cutoff by the paired t test at the level of 5 %.
func worse(values, cutoff []Value) bool {
	if len(values) < 2 {
		return true
	}
	var d []float64
	for i := range values {
		d = append(d, values[i].Main-cutoff[i].Main)
	}
	return mean(values).Main > mean(cutoff).Main && stat.PairedT(d) < .05
}
