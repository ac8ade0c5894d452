package merge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"onlinerna/train/extrapolate"
)

// keyRange holds the elements in a range of ranks by magnitude. Magnitudes are compared as float32; ties by position.
type keyRange struct {
	lo, hi     uint32 // keys
	loAt, hiAt int    // elements with the key lo are kept from loAt on, those with hi before hiAt
}

// key orders magnitudes as float32.
func key(d float64) uint32 { return math.Float32bits(float32(math.Abs(d))) }

func (r *keyRange) has(k uint32, at int) bool {
	return (k > r.lo || k == r.lo && at >= r.loAt) && (k < r.hi || k == r.hi && at < r.hiAt)
}

const (
	highBits = 16
	lowBits  = 31 - highBits

	// histogramBytes bounds the memory of counts.
	histogramBytes = 256 << 20
)

var errFinite = errors.New("a difference from the base is not finite: leave this model out")

// selected finds the keys of the elements with ranks first to first+count of each model's difference from the base; the
// smallest element has rank 0. It reads the tensor twice, and twice more if very many elements are as large as those at
// the borders.
func selected(ctx context.Context, s *extrapolate.Series, t extrapolate.Tensor, first, count int) ([]keyRange, error) {
	models := len(s.Files()) - 1
	ranges := make([]keyRange, models)
	if count == 0 {
		return ranges, nil // keys below 0: none
	}
	ranks := [2]int{first, first + count - 1}
	high, err := histogram(ctx, s, t, models, nil)
	if err != nil {
		return nil, err
	}
	borders := make([][2]border, models)
	for m := range models {
		if bad := high[m][0][0x7f800000>>lowBits:]; sumOf(bad) > 0 {
			return nil, fmt.Errorf("tensor %q: %s: %w", t.Name, s.Files()[m+1].Path, errFinite)
		}
		for e, rank := range ranks {
			b := &borders[m][e]
			for k, n := range high[m][0] {
				if rank < b.rank+int(n) {
					b.key = uint32(k) << lowBits
					break
				}
				b.rank += int(n)
			}
		}
	}
	var tops [][2]uint32
	for _, b := range borders {
		tops = append(tops, [2]uint32{b[0].key >> lowBits, b[1].key >> lowBits})
	}
	found, err := gather(ctx, s, t, tops)
	if err != nil {
		return nil, err
	}
	if found != nil {
		for m, b := range borders {
			lo := found[m][0][ranks[0]-b[0].rank]
			ranges[m] = keyRange{b[0].key | lo.low, math.MaxUint32, lo.at, t.Len()}
			if ranks[1] < t.Len()-1 {
				hi := found[m][1][ranks[1]-b[1].rank]
				ranges[m].hi, ranges[m].hiAt = b[1].key|hi.low, hi.at+1
			}
		}
		return ranges, nil
	}
	low, err := histogram(ctx, s, t, models, tops)
	if err != nil {
		return nil, err
	}
	for e := range ranks {
		for m := range models {
			b := &borders[m][e]
			for k, n := range low[m][e] {
				if ranks[e] < b.rank+int(n) {
					b.key, b.of, b.use = b.key|uint32(k), int(n), ranks[e]-b.rank
					break
				}
				b.rank += int(n)
			}
		}
		if e == 0 && ranks[1] == t.Len()-1 { // up to the largest
			for m := range models {
				borders[m][1] = border{key: math.MaxUint32}
			}
			break
		}
	}
	return ranges, places(ctx, s, t, borders, ranges)
}

// border is an end of the kept ranks.
type border struct {
	key uint32
	// the rank of the key's first element, the number of its elements, and the border's index among them
	rank, of, use int
}

// element is an element of a difference by the low bits of its key, and its place.
type element struct {
	low uint32
	at  int
}

// gatherLen bounds the elements that gather holds.
var gatherLen int64 = 4 << 20

// gather lists the elements of each model's difference with each of two values of the high bits of their key, the
// smallest first, equal ones by place; nil if there are too many.
func gather(ctx context.Context, s *extrapolate.Series, t extrapolate.Tensor, tops [][2]uint32) ([][2][]element,
	error) {
	by := make([][][2][]element, s.Workers())
	var held atomic.Int64
	err := s.Scan(ctx, t, func(worker, _, at int, in [][]float64) {
		if held.Load() > gatherLen {
			return
		}
		if by[worker] == nil {
			by[worker] = make([][2][]element, len(tops))
		}
		n := 0
		for m := range by[worker] {
			own, lo, hi, x := &by[worker][m], tops[m][0], tops[m][1], in[m+1][:len(in[0])]
			for i, base := range in[0] {
				k := key(x[i] - base)
				if top := k >> lowBits; top != lo && top != hi {
					continue
				}
				e := element{k & (1<<lowBits - 1), at + i}
				if k>>lowBits == lo {
					own[0] = append(own[0], e)
					n++
				}
				if k>>lowBits == hi && hi != lo {
					own[1] = append(own[1], e)
					n++
				}
			}
		}
		held.Add(int64(n))
	})
	if err != nil || held.Load() > gatherLen {
		return nil, err
	}
	all := make([][2][]element, len(tops))
	for m := range all {
		for e := range all[m] {
			for _, own := range by {
				if own != nil {
					all[m][e] = append(all[m][e], own[m][e]...)
				}
			}
			slices.SortFunc(all[m][e], func(a, b element) int {
				return cmp.Or(cmp.Compare(a.low, b.low), cmp.Compare(a.at, b.at))
			})
		}
		if tops[m][0] == tops[m][1] {
			all[m][1] = all[m][0]
		}
	}
	return all, nil
}

func sumOf(counts []uint64) (n uint64) {
	for _, v := range counts {
		n += v
	}
	return n
}

// histogram counts the elements of each model's difference by the high bits of their key; or, given two values of these
// for each model, those with each of the two by the low bits.
func histogram(ctx context.Context, s *extrapolate.Series, t extrapolate.Tensor, models int,
	tops [][2]uint32) ([][][]uint64, error) {
	sets, buckets := 1, 1<<highBits
	if tops != nil {
		sets, buckets = 2, 1<<lowBits
	}
	workers := max(min(s.Workers(), histogramBytes/(8*models*sets*buckets)), 1)
	narrow := s.WithWorkers(workers)
	counts := make([][][][]uint64, workers) // by worker, model and set
	fresh := func() (by [][][]uint64) {
		for range models {
			own := make([][]uint64, sets)
			for e := range own {
				own[e] = make([]uint64, buckets)
			}
			by = append(by, own)
		}
		return by
	}
	err := narrow.Scan(ctx, t, func(worker, _, _ int, in [][]float64) {
		if counts[worker] == nil {
			counts[worker] = fresh()
		}
		for m, own := range counts[worker] {
			x := in[m+1][:len(in[0])]
			if tops == nil {
				for i, base := range in[0] {
					own[0][key(x[i]-base)>>lowBits]++
				}
				continue
			}
			lo, hi := tops[m][0], tops[m][1]
			for i, base := range in[0] {
				k := key(x[i] - base)
				if k>>lowBits == lo {
					own[0][k&(1<<lowBits-1)]++
				}
				if k>>lowBits == hi {
					own[1][k&(1<<lowBits-1)]++
				}
			}
		}
	})
	if err != nil {
		return nil, err
	}
	sum := fresh()
	for _, by := range counts {
		for m, own := range by {
			for e, c := range own {
				for i, v := range c {
					sum[m][e][i] += v
				}
			}
		}
	}
	return sum, nil
}

// places sets the ranges of the borders, and finds the places of those within equal elements.
func places(ctx context.Context, s *extrapolate.Series, t extrapolate.Tensor, borders [][2]border,
	ranges []keyRange) error {
	type wanted struct {
		model int
		key   uint32
		n     int  // among the elements with the key
		at    *int // is set to the element's place
	}
	var list []wanted
	for m := range ranges {
		r, lo, hi := &ranges[m], borders[m][0], borders[m][1]
		*r = keyRange{lo: lo.key, hi: hi.key, hiAt: t.Len()}
		if lo.key > 0 && lo.use > 0 { // zeros make no difference
			list = append(list, wanted{m + 1, lo.key, lo.use, &r.loAt})
		}
		if hi.key > 0 && hi.of > 0 && hi.use < hi.of-1 {
			list = append(list, wanted{m + 1, hi.key, hi.use + 1, &r.hiAt})
		}
	}
	if list == nil {
		return nil
	}
	counts := make([][]int, s.Parts(t))
	err := s.Scan(ctx, t, func(_, part, _ int, in [][]float64) {
		if counts[part] == nil {
			counts[part] = make([]int, len(list))
		}
		for j, w := range list {
			for i, base := range in[0] {
				if key(in[w.model][i]-base) == w.key {
					counts[part][j]++
				}
			}
		}
	})
	if err != nil {
		return err
	}
	in := make([]int, len(list)) // the elements' parts
	for j := range list {
		for n := &list[j].n; in[j] < len(counts)-1 && *n >= counts[in[j]][j]; in[j]++ {
			*n -= counts[in[j]][j]
		}
	}
	return s.Scan(ctx, t, func(_, part, from int, rows [][]float64) {
		for j := range list {
			if in[j] != part {
				continue
			}
			w := &list[j]
			for i, base := range rows[0] {
				if key(rows[w.model][i]-base) == w.key {
					if w.n == 0 {
						*w.at = from + i
					}
					w.n--
				}
			}
		}
	})
}
