package rna

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"onlinerna/internal/parallel"
	"onlinerna/rna/internal/dd"
	"onlinerna/rna/kernel"
)

// exactRows elements of the residuals have one sum.
const exactRows = 1 << 10

// products caches inner products of a window's residuals in twice the precision, by slot.
type products struct {
	n     int
	sums  []dd.Num
	known []bool
}

// forget drops the products of a slot that gets another column.
func (p *products) forget(slot int) {
	if p == nil {
		return
	}
	for i := range p.n {
		p.known[slot*p.n+i], p.known[i*p.n+slot] = false, false
	}
}

// exact returns the Gram matrix of columns, each times 2^-exp, in twice the precision: differences are exact, and
// products are summed in pairs of float64. It reads each vector of a column without cached products once.
func (w *Window) exact(cols []column) (dd.Matrix, error) {
	p := w.products
	if p == nil {
		p = &products{n: w.n, sums: make([]dd.Num, w.n*w.n), known: make([]bool, w.n*w.n)}
		w.products = p
	}
	type pair struct{ i, j int }
	var missing []pair
	used := make([]bool, len(cols))
	for i := range cols {
		for j := range i + 1 {
			if !p.known[cols[i].slot*w.n+cols[j].slot] {
				missing = append(missing, pair{i, j})
				used[i], used[j] = true, true
			}
		}
	}
	if len(missing) > 0 {
		var some []column
		place := make([]int, len(cols))
		for i, u := range used {
			if u {
				place[i] = len(some)
				some = append(some, cols[i])
			}
		}
		reads, pairs := readsOf(some)
		own, dim, threads, failed := w.rowsOf(reads)
		span := min(max(readElements/(exactRows*(len(reads)+1)), 1), 32) * exactRows
		group := max(1, (dim+foldGroups*span-1)/(foldGroups*span)*span)
		sums := make([][]dd.Num, (dim+group-1)/group)
		errs := make([]error, len(sums))
		parallel.For(len(sums), threads, func(_, g int) {
			sums[g] = make([]dd.Num, len(missing))
			errs[g] = differences(own, pairs, g*group, min((g+1)*group, dim), span, func(high, low [][]float64) {
				for k, m := range missing {
					i, j := place[m.i], place[m.j]
					sums[g][k] = sums[g][k].Add(dd.Dot(high[i], low[i], high[j], low[j]))
				}
			})
		})
		for _, err := range errs {
			if err != nil {
				failed = fmt.Errorf("rna: residuals: %w", err)
			}
		}
		totals := make([]dd.Num, len(missing))
		for k := range totals {
			for _, s := range sums {
				totals[k] = totals[k].Add(s[k])
			}
		}
		if err := w.total(totals, failed); err != nil {
			return nil, err
		}
		for k, m := range missing {
			sum := totals[k]
			a, b := cols[m.i].slot, cols[m.j].slot
			p.sums[a*w.n+b], p.sums[b*w.n+a] = sum, sum
			p.known[a*w.n+b], p.known[b*w.n+a] = true, true
		}
	}
	g := dd.NewMatrix(len(cols))
	for i := range cols {
		for j := range i + 1 {
			*g.At(i, j) = p.sums[cols[i].slot*w.n+cols[j].slot]
		}
	}
	return g, nil
}

// differences calls use with the residuals of the rows [lo, hi), some rows at a time, each as a sum high + low. The low
// part is nil where it is zero.
func differences(reads []normed, pairs []kernel.Pair, lo, hi, span int, use func(high, low [][]float64)) error {
	span = min(span, hi-lo)
	views := make([][]float64, len(reads))
	for i := range views {
		views[i] = make([]float64, span)
	}
	rows := min(exactRows, span)
	buf := make([]float64, 2*rows*len(pairs))
	high, low := make([][]float64, len(pairs)), make([][]float64, len(pairs))
	for at := lo; at < hi; at += span {
		n := min(span, hi-at)
		for i, r := range reads {
			if err := r.vector.ReadAt64(views[i][:n], at); err != nil {
				return err
			}
		}
		for from := 0; from < n; from += rows {
			m := min(rows, n-from)
			for j, p := range pairs {
				h, l := buf[2*j*rows:][:m], buf[(2*j+1)*rows:][:m]
				copy(h, views[p.X][from:])
				inexact := false
				if p.Y >= 0 {
					for i, v := range views[p.Y][from : from+m] {
						d := dd.Sum(h[i], -v)
						h[i], l[i] = d.Hi, d.Lo
						inexact = inexact || d.Lo != 0
					}
				}
				if p.Exp != 0 {
					kernel.Shift(h, -p.Exp)
					if inexact {
						kernel.Shift(l, -p.Exp)
					}
				}
				if high[j], low[j] = h, nil; inexact {
					low[j] = l
				}
			}
			use(high, low)
		}
	}
	return nil
}

// refine sets res to the coefficients for its λ, solved in pairs of float64 from exact products. It returns false,
// and leaves res alone, if the matrix is not definite enough.
func (w *Window) refine(res *Result, s *Spectrum, cols []column) (bool, error) {
	g, err := w.exact(cols)
	if err != nil {
		return false, err
	}
	n := len(cols)
	shift := dd.Product(res.Lambda, s.top)
	if !isFinite(shift.Hi) {
		return false, nil
	}
	for i := range n {
		for j := range i + 1 {
			*g.At(i, j) = g.At(i, j).Ldexp(cols[i].exp + cols[j].exp - 2*s.exp)
		}
		*g.At(i, i) = g.At(i, i).Add(shift)
	}
	if !g.Cholesky(n) {
		return false, nil
	}
	z := make([]dd.Num, n)
	for i := range z {
		z[i] = dd.Of(1)
	}
	g.Solve(z)
	var total dd.Num
	for _, v := range z {
		total = total.Add(v)
	}
	// The singular values of the factor are those of [R; √λ‖R‖I].
	factor := mat.NewDense(n, n, nil)
	for i := range n {
		for j := range i + 1 {
			factor.Set(i, j, g.At(i, j).Float())
		}
	}
	var svd mat.SVD
	if !svd.Factorize(factor, mat.SVDNone) {
		return false, nil
	}
	values := svd.Values(nil)
	ratio := values[0] / values[n-1]
	accuracy := 4*epsilon + 4*float64(n)*dd.Epsilon*ratio*ratio
	if !(accuracy <= 1e-3) {
		return false, nil
	}
	c, norm, deviation := make([]float64, n), 0.0, 0.0
	for i, v := range z {
		v = v.Div(total)
		c[i] = v.Float()
		norm = math.Hypot(norm, c[i])
		deviation = math.Hypot(deviation, v.Sub(dd.Of(1).Div(dd.Of(float64(n)))).Float())
	}
	if !isFinite(norm) {
		return false, nil
	}
	*res = Result{
		C: c, NormC: norm, Lambda: res.Lambda, Tau: excess(n, deviation), Condition: ratio * ratio, Accuracy: accuracy,
		Rank: res.Rank, Norm: s.Norm(), ResidualNorms: res.ResidualNorms,
	}
	return true, nil
}
