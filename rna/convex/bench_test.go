package convex

import (
	"fmt"
	"testing"
)

// An iteration on data of madelon's size, dense, and of MNIST's, sparse.
func BenchmarkMinimize(b *testing.B) {
	dense, _ := twins(b, 2000, 500, 1)
	_, sparse := twins(b, 8000, 785, 0.19)
	for _, d := range []*Data{dense, sparse} {
		r := risk(b, d, Logistic, 0)
		r.Reg = regular * r.Smoothness()
		p := problem(b, r)
		for _, m := range []Method{GD, Online{GD}, LBFGS} {
			b.Run(fmt.Sprintf("values=%d/%s", d.X.NonZeros(), m), func(b *testing.B) {
				if _, err := Minimize(p, m, Options{Iterations: b.N}); err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}
