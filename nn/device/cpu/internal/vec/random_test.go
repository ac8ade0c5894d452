package vec

import (
	"math/rand/v2"
	"testing"

	"onlinerna/internal/simd"
	"onlinerna/nn/op/expr"
)

func TestUniforms(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	for _, l := range simd.All() {
		for n := range 130 {
			key, step, sample := r.Uint64(), r.Uint32(), r.Uint32()
			element := r.IntN(50)
			if n%7 == 0 {
				element = 1<<32 - 40 // here the numbers of elements exceed 32 bits
			}
			x := make([]float32, n+2)
			x[n], x[n+1] = 7, 7
			For(l).Uniforms(x[:n], key, step, sample, element)
			for i, v := range x[:n] {
				if want := expr.Uniform(key, step, sample, uint32(element+i)); v != want && uint64(element+i) < 1<<32 {
					t.Fatalf("level %v: element %d of %d from %d is %v, want %v", l, i, n, element, v, want)
				}
			}
			if x[n] != 7 || x[n+1] != 7 {
				t.Fatalf("level %v: wrote behind %d", l, n)
			}
		}
	}
}
