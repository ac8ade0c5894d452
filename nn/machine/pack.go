package machine

import (
	"cmp"
	"slices"
)

// item is storage that is needed from one place of the program to another, both included.
type item struct{ bytes, first, last int }

// pack finds offsets such that items whose lives overlap do not, and the bytes that all of them take. Best fit in
// the order of time and by decreasing size are both good at times: it takes the better one.
func pack(items []item) (offsets []int, bytes int) {
	bySize := func(a, b int) int { return cmp.Compare(items[b].bytes, items[a].bytes) }
	byTime := func(a, b int) int { return cmp.Compare(items[a].first, items[b].first) }
	byLife := func(a, b int) int {
		return cmp.Compare(items[b].last-items[b].first, items[a].last-items[a].first)
	}
	for i, orders := range [][]func(a, b int) int{{bySize, byTime}, {byTime, bySize}, {byLife, bySize}} {
		order := make([]int, len(items))
		for j := range order {
			order[j] = j
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Or(orders[0](a, b), orders[1](a, b)) })
		if o, n := packInOrder(items, order); i == 0 || n < bytes {
			offsets, bytes = o, n
		}
	}
	return offsets, bytes
}

// packInOrder puts one item after the other into the smallest gap that it fits in.
func packInOrder(items []item, order []int) (offsets []int, bytes int) {
	offsets = make([]int, len(items))
	placed := make([]int, 0, len(items)) // by offset
	for _, i := range order {
		x, size := items[i], align(items[i].bytes)
		at, gap := -1, 0
		end := 0 // of the items below
		for _, j := range placed {
			if y := items[j]; y.last < x.first || x.last < y.first {
				continue
			}
			if free := offsets[j] - end; free >= size && (at < 0 || free < gap) {
				at, gap = end, free
			}
			end = max(end, offsets[j]+align(items[j].bytes))
		}
		if at < 0 {
			at = end
		}
		offsets[i] = at
		bytes = max(bytes, at+size)
		k, _ := slices.BinarySearchFunc(placed, at, func(j, at int) int { return cmp.Compare(offsets[j], at) })
		placed = slices.Insert(placed, k, i)
	}
	return offsets, bytes
}
