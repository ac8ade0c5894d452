package update

import "onlinerna/nn/op/expr"

// Float is an element type of parameters.
type Float interface{ float32 | float64 }

// Piece holds equally many elements of the parameters, of their gradient and of the vectors of state.
type Piece[T Float] struct {
	W, G  []T
	State [MaxState][]T // those that the optimiser has
}

// Of is n elements of p from off on.
func (p Piece[T]) Of(off, n int) Piece[T] {
	q := Piece[T]{W: p.W[off : off+n], G: p.G[off : off+n]}
	for i, x := range p.State {
		if x != nil {
			q.State[i] = x[off : off+n]
		}
	}
	return q
}

// vectors are p's by the places of arguments.
func (p *Piece[T]) vectors() [Vectors][]T { return [Vectors][]T{p.W, p.G, p.State[0], p.State[1]} }

// Sums are squares that were added up in float64: those of the two Squares of element i are in lane i%8.
type Sums [2][8]float64

// Total adds up the lanes of quantity k.
func (s *Sums) Total(k int) (sum float64) {
	for _, x := range s[k] {
		sum += x
	}
	return sum
}

// Definition computes the body of a pass as it is defined: each operation is rounded to T.
type Definition[T Float] struct {
	to        []int
	evaluator *expr.Evaluator
	args      [Args][]float64
}

// Define makes the definition of a body. It belongs to one goroutine.
func Define[T Float](b Body) *Definition[T] {
	list, to := b.outputs()
	d := &Definition[T]{to: to, evaluator: expr.NewEvaluator(T(1)+T(1)/(1<<30) == 1, list...)}
	for i := range d.args {
		d.args[i] = make([]float64, expr.BlockSize)
	}
	return d
}

// Run computes the elements of p, by coefficients that are rounded to T, and adds squares to sums.
func (d *Definition[T]) Run(p Piece[T], c Values, sums *Sums) {
	vectors := p.vectors()
	for i, x := range c {
		args := d.args[argCoefficient+i][:min(expr.BlockSize, len(p.W))]
		for j := range args {
			args[j] = float64(T(x))
		}
	}
	for lo := 0; lo < len(p.W); lo += expr.BlockSize {
		n := min(expr.BlockSize, len(p.W)-lo)
		for i, x := range vectors {
			if x != nil {
				for j, a := range x[lo : lo+n] {
					d.args[i][j] = float64(a)
				}
			}
		}
		d.evaluator.Run(n, d.args[:], nil)
		for k, at := range d.to {
			result := d.evaluator.Result(k)[:n]
			if at >= Vectors {
				for j, x := range result {
					sums[at-Vectors][(lo+j)%8] += float64(x * x)
				}
				continue
			}
			for j, x := range result {
				vectors[at][lo+j] = T(x)
			}
		}
	}
}
