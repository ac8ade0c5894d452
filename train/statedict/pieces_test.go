package statedict

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"onlinerna/internal/pickle"
)

// splitBox cuts a box at random until there are n.
func splitBox(r *rand.Rand, shape []int, n int) []piece {
	list := []piece{{at: make([]int, len(shape)), size: slices.Clone(shape)}}
	for range 20 * n {
		if len(list) == n {
			break
		}
		i, k := r.IntN(len(list)), r.IntN(len(shape))
		p := list[i]
		if p.size[k] < 2 {
			continue
		}
		at, size := slices.Clone(p.at), slices.Clone(p.size)
		first := 1 + r.IntN(p.size[k]-1)
		at[k], size[k] = at[k]+first, size[k]-first
		list[i].size = slices.Clone(p.size)
		list[i].size[k] = first
		list = append(list, piece{at: at, size: size})
	}
	return list
}

// once counts, element by element, whether the pieces hold each once.
func once(shape []int, pieces []piece) bool {
	seen := make([]int, product(shape))
	to := strides(shape)
	for _, p := range pieces {
		if product(p.size) == 0 {
			continue
		}
		each(p.size, func(k []int) error {
			at := 0
			for i := range k {
				at += (p.at[i] + k[i]) * to[i]
			}
			seen[at]++
			return nil
		})
	}
	return !slices.ContainsFunc(seen, func(n int) bool { return n != 1 })
}

// Boxes of random tilings, and tilings with a box moved, are judged as by counting elements.
func TestCovered(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	good, bad, moved := 0, 0, 0
	for range 4000 {
		shape := make([]int, 1+r.IntN(3))
		for k := range shape {
			shape[k] = 1 + r.IntN(6)
		}
		pieces := splitBox(r, shape, 1+r.IntN(12))
		for range r.IntN(3) { // each keeps the number of elements
			p := &pieces[r.IntN(len(pieces))]
			k := r.IntN(len(shape))
			p.at = slices.Clone(p.at)
			p.at[k] = r.IntN(shape[k] - p.size[k] + 1)
			moved++
		}
		want := once(shape, pieces)
		if err := covered(shape, pieces); (err == nil) != want || err != nil && !errors.Is(err, errCovered) {
			t.Fatalf("%v in %v: %v, want %v", pieces, shape, err, want)
		}
		if want {
			good++
		} else {
			bad++
		}
	}
	if good < 1000 || bad < 500 {
		t.Errorf("%d good, %d bad, %d moved", good, bad, moved)
	}
}

// Many parts are compared, too, and in a moment.
func TestCoveredByMany(t *testing.T) {
	var rows []piece
	for i := range 100_000 {
		rows = append(rows, piece{at: []int{i, 0}, size: []int{1, 8}})
	}
	shape := []int{len(rows), 8}
	if err := covered(shape, rows); err != nil {
		t.Error(err)
	}
	rows[1].at = []int{2, 0}
	if err := covered(shape, rows); !errors.Is(err, errCovered) {
		t.Errorf("one row twice, one missing: %v", err)
	}
	far := make([]int, 20)
	for k := range far {
		far[k] = 2
	}
	if err := covered(far, splitBox(rand.New(rand.NewPCG(1, 1)), far, 5000)); err == nil || errors.Is(err, errCovered) ||
		!strings.Contains(err.Error(), "20 dimensions") {
		t.Error(err)
	}
}

// Attributes are looked up one by one, in as many objects as the metadata have parts: objects have few.
func TestAttributes(t *testing.T) {
	d := &pickle.Dict{}
	for i := range maxAttributes - 1 {
		d.Items = append(d.Items, pickle.Item{Key: fmt.Sprint(i), Value: "x"})
	}
	d.Items = append(d.Items, pickle.Item{Key: "fqn", Value: "w"})
	o := &pickle.Object{State: d}
	if got := attribute(o, "fqn"); got != "w" {
		t.Errorf("%v of %d attributes", got, len(d.Items))
	}
	d.Items = append(d.Items, pickle.Item{Key: "more", Value: "x"})
	if got := attribute(o, "fqn"); got != nil {
		t.Errorf("%v of %d attributes", got, len(d.Items))
	}
}
