package rows

import (
	"onlinerna/nn/device/cpu/internal/vec"
	"onlinerna/nn/device/cpu/internal/work"
)

// lanes is the number of columns that sums of a row run in, and of the copies of a number of the row that kernels take
// as parameters.
const lanes = 64

// numbers is the number of such parameters.
const numbers = 4

// room is the scratch of a worker.
type room struct {
	*vec.Set
	first, second []float64          // sums of columns
	copies        [numbers][]float32 // of numbers of the row
	row           []float32
}

// parts are the places of the rooms in a workspace, by worker.
type parts struct {
	sums          [][2]work.Part
	numbers, rows []work.Part
}

// rooms takes room for each worker, for rows of the given width.
func rooms(r *work.Room, workers, width int) parts {
	var p parts
	for range workers {
		p.sums = append(p.sums, [2]work.Part{r.Doubles(lanes), r.Doubles(lanes)})
	}
	p.numbers, p.rows = r.Each(workers, numbers*lanes), r.Each(workers, width)
	return p
}

// bind gives the rooms.
func (p parts) bind(s *work.Storage) []room {
	list := make([]room, len(p.sums))
	for i := range list {
		k := &list[i]
		k.Set, k.row = vec.For(s.Level), s.Scratch(p.rows[i])
		k.first, k.second = s.Scratch64(p.sums[i][0]), s.Scratch64(p.sums[i][1])
		x := s.Scratch(p.numbers[i])
		for j := range k.copies {
			if x != nil {
				k.copies[j] = x[j*lanes:][:lanes]
			}
		}
	}
	return list
}

// copy fills copies with a number.
func (k *room) copy(i int, v float64) []float32 {
	k.Fill(k.copies[i], float32(v))
	return k.copies[i]
}

// affine sets dst to (x − mean)·gain.
func (k *room) affine(dst, x []float32, mean, gain float64) {
	k.Normalize(dst, x, k.copy(0, mean), k.copy(1, gain), k.copy(2, 0))
}

// columns calls f for the parts of a row of n elements that sums take as matrices: rows of the given width from element
// at on, without gaps.
func (k *room) columns(n int, f func(at, width, rows int)) {
	clear(k.first)
	clear(k.second)
	if rows := n / lanes; rows > 0 {
		f(0, lanes, rows)
	}
	if rest := n % lanes; rest > 0 {
		f(n-rest, rest, 1)
	}
}

// total adds up the sums of columns.
func total(x []float64) float64 {
	var a, b, c, d float64
	for ; len(x) >= 4; x = x[4:] {
		a, b, c, d = a+x[0], b+x[1], c+x[2], d+x[3]
	}
	return a + b + (c + d)
}

// sum adds up all elements.
func (k *room) sum(x []float32) float64 {
	k.columns(len(x), func(at, width, rows int) { k.Sums(k.first, x[at:], width, width, rows) })
	return total(k.first)
}

// dots adds up dy·(x − mean), with the difference in float32, and dy.
func (k *room) dots(x, dy []float32, mean float64) (mixed, sum float64) {
	m := k.copy(0, mean)
	k.columns(len(x), func(at, width, rows int) {
		k.GradSums(k.first, k.second, x[at:], dy[at:], m, width, width, rows)
	})
	return total(k.first), total(k.second)
}

// largest is the largest element. It may skip a NaN.
func (k *room) largest(x []float32) float32 {
	top := x[0]
	for n := len(x); n > 1; {
		h := n / 2
		if n%2 == 1 {
			top = max(top, x[n-1])
		}
		k.Max(k.row[:h], x[:h], x[h:2*h])
		x, n = k.row, h
		if n <= 16 {
			for _, v := range x[:n] {
				top = max(top, v)
			}
			break
		}
	}
	return top
}
