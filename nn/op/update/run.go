package update

import "onlinerna/nn/op/expr"

// Float is an element type of parameters.
type Float interface{ float32 | float64 }

// Piece is some elements of the parameters, of their gradient and of the vectors of state, as many of each.
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

// Run defines a pass: it computes b on the elements of p, each operation rounded to T, as are the coefficients, and adds squares to sums.
func Run[T Float](b Body, p Piece[T], c Values, sums *Sums) {
	round := func(x float64) float64 { return float64(T(x)) }
	list, to := b.outputs()
	v := expr.NewEvaluator(round, list...)
	vectors := p.vectors()
	var args [Args][]float64
	for i := range args {
		args[i] = make([]float64, expr.BlockSize)
		if i >= argCoefficient {
			for j := range args[i] {
				args[i][j] = round(c[i-argCoefficient])
			}
		}
	}
	for lo := 0; lo < len(p.W); lo += expr.BlockSize {
		n := min(expr.BlockSize, len(p.W)-lo)
		for i, x := range vectors {
			if x != nil {
				for j, a := range x[lo : lo+n] {
					args[i][j] = float64(a)
				}
			}
		}
		v.Run(n, args[:], nil)
		for k, at := range to {
			result := v.Result(k)[:n]
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
