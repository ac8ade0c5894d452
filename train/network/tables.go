package network

import (
	"fmt"
	"math"
	"strings"

	"onlinerna/nn"
	"onlinerna/nn/op"
	"onlinerna/train/statedict"
)

// table is a parameter with a number for each head and distance between two tokens, in a file and in the model.
type table struct {
	from, to int  // sides of the squares of distances
	first    bool // heads are the first dimension: [heads,n²] or [heads,n,n] instead of [n²+extra,heads]
	extra    int  // rows behind the squares, for a class token
	absolute bool // distances have no sign
}

// tableOf finds the table of an entry of the model's in a file's tensor of shape t; ok is false if the entry is none,
// or both have the same distances.
func tableOf(e nn.Entry, t []int) (r table, ok bool) {
	name := e.Name[strings.LastIndexByte(e.Name, '.')+1:]
	r.absolute = name == "attention_biases"
	r.first = r.absolute || len(e.Shape) == 3
	if !r.absolute && name != "relative_position_bias_table" || len(t) != len(e.Shape) || len(t) < 2 {
		return r, false
	}
	switch {
	case len(t) == 3:
		if t[1] == t[2] && e.Shape[1] == e.Shape[2] {
			r.from, r.to = t[1], e.Shape[1]
		}
		ok = t[0] == e.Shape[0]
	case r.first:
		r.from, r.to, ok = root(t[1]), root(e.Shape[1]), t[0] == e.Shape[0]
	default:
		r.from, r.to, ok = root(t[0]), root(e.Shape[0]), t[1] == e.Shape[1]
		if r.from == 0 && r.to == 0 {
			r.extra = 3
			r.from, r.to = root(t[0]-r.extra), root(e.Shape[0]-r.extra)
		}
	}
	odd := r.absolute || r.from%2 == 1 && r.to%2 == 1
	return r, ok && odd && r.from > 0 && r.to > 0 && r.from != r.to
}

// loadTable reads a table and resizes it to the model's distances.
func (n *Network) loadTable(f *statedict.File, t statedict.Tensor, e nn.Entry, r table) error {
	x := make([]float64, op.Shape(t.Shape).Size())
	if err := f.Float64s(t, x); err != nil {
		return err
	}
	return n.upload(n.Params, n.params[e.Index], op.Tensor{Shape: e.Shape, Data: r.resize(x, e.Shape)})
}

// resize makes a table of the model's shape: by stretched, or bicubically for distances without a sign, as timm does.
func (r table) resize(x []float64, shape op.Shape) []float64 {
	distances := stretched
	if r.absolute {
		distances = bicubically.Weights
	}
	weights := distances(r.from, r.to)
	heads, size := shape[len(shape)-1], len(x)
	if r.first {
		heads, size = 1, r.from*r.from
	}
	squares := r.from * r.from * heads
	y := make([]float64, 0, shape.Size())
	for len(x) > 0 {
		y = append(append(y, resample(x[:squares], weights, heads)...), x[squares:size]...)
		x = x[size:]
	}
	return y
}

// stretched are the weights of linear interpolation from a row of signed distances to one of to distances; both numbers
// are odd. Steps between the file's distances start as 1 in the middle and grow by a constant factor outwards, such
// that the longest distances are the model's.
func stretched(from, to int) [][]float64 {
	steps, longest := from/2, float64(to/2)
	low, high, q := 1.01, 1.5, 0.
	for high-low > 1e-6 {
		q = (low + high) / 2
		if (1-math.Pow(q, float64(steps)))/(1-q) > longest {
			high = q
		} else {
			low = q
		}
	}
	places := make([]float64, from)
	for i := range steps {
		d := math.Abs(places[steps+i]) + math.Pow(q, float64(i))
		places[steps+i+1], places[steps-i-1] = d, -d
	}
	weights := make([][]float64, to)
	left := 0
	for i := range weights {
		weights[i] = make([]float64, from)
		x := min(max(float64(i)-longest, places[0]), places[from-1])
		for left < from-2 && x > places[left+1] {
			left++
		}
		if from == 1 {
			weights[i][0] = 1
			continue
		}
		part := (x - places[left]) / (places[left+1] - places[left])
		weights[i][left], weights[i][left+1] = 1-part, part
	}
	return weights
}

// tables describes the tables that loading resizes, "" if there are none.
func (n *Network) tables(f *statedict.File) string {
	count, first := 0, ""
	for _, e := range n.model.StateDict() {
		t, found := f.Lookup(e.Name)
		if !found {
			continue
		}
		if r, ok := tableOf(e, t.Shape); ok {
			if count++; count == 1 {
				first = fmt.Sprintf("%s is resized from %d×%[2]d to %d×%[3]d relative positions", e.Name, r.from, r.to)
			}
		}
	}
	if count > 1 {
		first += fmt.Sprintf(", and so are %d more", count-1)
	}
	return first
}
