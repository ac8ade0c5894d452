package nn

import (
	"fmt"
	"math"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn/op"
)

// scratch is a Builder without a net.
func scratch() *Builder {
	return &Builder{model: &Model{Graph: G.NewGraph(), Config: Config{Batch: 2, DType: op.Float64}}, names: map[string]bool{}}
}

// bound is an input with these numbers.
func bound(t *testing.T, b *Builder, name string, shape op.Shape, f func(i int) float64) (*G.Node, []float64) {
	x := make([]float64, shape.Size())
	for i := range x {
		x[i] = f(i)
	}
	n := b.input(name, op.T(op.Float64, shape...))
	bind(t, n, op.Tensor{Data: x})
	return n, x
}

// Attention to other tokens, with and without the graph of dropout, against loops. The values of a head are unit
// vectors times a number of the sequence and the head, so that the result shows the weights.
func TestAttention(t *testing.T) {
	const sequences, queries, keys, heads, d = 4, 3, 5, 2, 3
	wave := func(f float64) func(i int) float64 { return func(i int) float64 { return math.Sin(f * float64(i)) } }
	factor := func(n, h int) float64 { return float64(1 + h + 10*n) }
	for _, c := range []struct {
		groups         int // of the bias; 0: none
		scale, dropout float64
	}{{0, 0, 0}, {4, .3, 0}, {0, .3, 1e-12}, {4, 0, 1e-12}, {8, 0, .5}} {
		b := scratch()
		q, qs := bound(t, b, "q", op.Shape{sequences * queries, heads * d}, wave(1.3))
		k, ks := bound(t, b, "k", op.Shape{sequences * keys, heads * d}, wave(.7))
		v, _ := bound(t, b, "v", op.Shape{sequences * keys, heads * keys}, func(i int) float64 {
			row, column := i/(heads*keys), i%(heads*keys)
			if row%keys != column%keys {
				return 0
			}
			return factor(row/keys, column/keys)
		})
		var bias []*G.Node
		var biases []float64
		if c.groups > 0 {
			x, xs := bound(t, b, "bias", op.Shape{c.groups, queries, keys}, wave(2.1))
			bias, biases = []*G.Node{x}, xs
		}
		y := b.Attention("attention", q, k, v, sequences, Attention{Heads: heads, Scale: c.scale, Dropout: c.dropout}, bias...)
		if b.err != nil {
			t.Fatal(b.err)
		}
		if b.model.RandomCounter != nil {
			bind(t, b.model.RandomCounter, op.Tensor{Data: []int32{1, 0}})
		}
		if (b.model.RandomCounter != nil) != (c.dropout > 0) {
			t.Errorf("%+v: random numbers are counted: %v", c, b.model.RandomCounter)
		}
		runTape(t, b.model.Graph)
		got, kept, dropped := values(t, y), 0, 0
		scale := c.scale
		if scale == 0 {
			scale = 1 / math.Sqrt(d)
		}
		for n := range sequences {
			for h := range heads {
				for i := range queries {
					var w [keys]float64
					sum := 0.
					for s := range keys {
						for j := range d {
							w[s] += scale * qs[(n*queries+i)*heads*d+h*d+j] * ks[(n*keys+s)*heads*d+h*d+j]
						}
						if c.groups > 0 {
							w[s] += biases[((n*heads+h)%c.groups*queries+i)*keys+s]
						}
						w[s] = math.Exp(w[s])
						sum += w[s]
					}
					for s := range keys {
						is, want := got[(n*queries+i)*heads*keys+h*keys+s], w[s]/sum*factor(n, h)/(1-c.dropout)
						if c.dropout == .5 && is == 0 {
							dropped++
							continue
						}
						kept++
						if !(math.Abs(is-want) < 1e-10*want) {
							t.Fatalf("%+v: sequence %d, head %d, query %d, key %d: %g, want %g", c, n, h, i, s, is, want)
						}
					}
				}
			}
		}
		if c.dropout == .5 && min(kept, dropped) < 40 {
			t.Errorf("%d weights are kept, %d dropped", kept, dropped)
		}
	}
}

func TestAttentionErrors(t *testing.T) {
	for _, c := range []struct {
		q, k     op.Shape
		n, heads int
		dropout  float64
		want     string
	}{
		{op.Shape{6, 4}, op.Shape{6, 4}, 0, 2, 0, "layer a: 0 sequences and 2 heads: there must be some"},
		{op.Shape{6, 4}, op.Shape{7, 4}, 2, 2, 0, "layer a: the rows [7 4] are not those of 2 sequences for 2 heads"},
		{op.Shape{6, 4}, op.Shape{6, 5}, 2, 2, 0, "layer a: the rows [6 5] are not those of 2 sequences for 2 heads"},
		{op.Shape{6, 4}, op.Shape{6, 6}, 2, 2, .5, "queries are 4 of 2 elements a row, keys 4 of 3"},
		{op.Shape{6, 4}, op.Shape{6, 4}, 2, 2, 1, "layer a.dropout: probability 1: must be in [0,1)"},
	} {
		b := scratch()
		q, k := b.input("q", op.T(op.Float64, c.q...)), b.input("k", op.T(op.Float64, c.k...))
		b.Attention("a", q, k, k, c.n, Attention{Heads: c.heads, Dropout: c.dropout})
		if b.err == nil || !strings.Contains(fmt.Sprint(b.err), c.want) {
			t.Errorf("%v, want %s", b.err, c.want)
		}
	}
}
