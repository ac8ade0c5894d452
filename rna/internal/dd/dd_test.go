package dd

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

const bits = 400

func exact(a Num) *big.Float {
	x := new(big.Float).SetPrec(bits).SetFloat64(a.Hi)
	return x.Add(x, new(big.Float).SetPrec(bits).SetFloat64(a.Lo))
}

func random(rng *rand.Rand) Num {
	a := math.Ldexp(rng.NormFloat64(), rng.IntN(40)-20)
	return Sum(a, a*0x1p-53*(2*rng.Float64()-1))
}

// Operations are right to some 100 bits, against 400.
func TestOperations(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	worst := map[string]float64{}
	for range 20000 {
		a, b := random(rng), random(rng)
		x, y := exact(a), exact(b)
		f := func() *big.Float { return new(big.Float).SetPrec(bits) }
		check := func(name string, got Num, want *big.Float, size *big.Float) {
			diff, _ := f().Quo(f().Sub(exact(got), want), size).Float64()
			worst[name] = max(worst[name], math.Abs(diff))
		}
		check("add", a.Add(b), f().Add(x, y), f().Add(f().Abs(x), f().Abs(y)))
		check("sub", a.Sub(b), f().Sub(x, y), f().Add(f().Abs(x), f().Abs(y)))
		check("mul", a.Mul(b), f().Mul(x, y), f().Mul(x, y))
		check("div", a.Div(b), f().Quo(x, y), f().Quo(x, y))
		if a.Hi > 0 {
			check("sqrt", a.Sqrt(), f().Sqrt(x), f().Sqrt(x))
		}
		check("ldexp", a.Ldexp(-70), f().SetMantExp(x, -70), f().SetMantExp(x, -70))
	}
	for name, e := range worst {
		if !(e <= 4*Epsilon) {
			t.Errorf("%s: relative error %.1e", name, e)
		}
	}
}

func TestDot(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{0, 1, 3, 4, 1000, 1003} {
		var h, l, g, m []float64
		want, size := new(big.Float).SetPrec(bits), 0.0
		for range n {
			a, b := random(rng), random(rng)
			h, l, g, m = append(h, a.Hi), append(l, a.Lo), append(g, b.Hi), append(m, b.Lo)
			p := new(big.Float).SetPrec(bits).Mul(exact(a), exact(b))
			want.Add(want, p)
			size += math.Abs(a.Hi * b.Hi)
		}
		diff, _ := new(big.Float).SetPrec(bits).Sub(exact(Dot(h, l, g, m)), want).Float64()
		if !(math.Abs(diff) <= float64(n+1)*Epsilon*size) {
			t.Errorf("%d products: off by %.1e of %.1e", n, diff, size)
		}
	}
	if got := Dot([]float64{1, 2}, nil, []float64{3, 4}, nil).Float(); got != 11 {
		t.Errorf("1·3 + 2·4 = %v", got)
	}
}

// Hilbert's matrix of order 14 has a condition number of 1e19. Its inverse times 1 is known.
func TestSolve(t *testing.T) {
	const n = 14
	m := NewMatrix(n)
	for i := range n {
		for j := range i + 1 {
			*m.At(i, j) = Of(1).Div(Of(float64(i + j + 1)))
		}
	}
	if !m.Cholesky(n) {
		t.Fatal("not positive definite")
	}
	b := make([]Num, n)
	for i := range b {
		b[i] = Of(1)
	}
	m.Solve(b)
	for i := range n {
		// (−1)^(n−1−i) (n+i)! / (i!² (n−1−i)!)
		f := func(k int) *big.Int { return new(big.Int).MulRange(1, int64(k)) }
		want, _ := new(big.Rat).SetFrac(f(n+i), new(big.Int).Mul(new(big.Int).Mul(f(i), f(i)), f(n-1-i))).Float64()
		if (n-1-i)%2 == 1 {
			want = -want
		}
		if got := b[i].Float(); !(math.Abs(got/want-1) <= 1e-10) {
			t.Errorf("x[%d] = %v, want %v", i, got, want)
		}
	}
	singular := Matrix{Of(1), Of(1), Of(1)}
	if singular.Cholesky(2) {
		t.Error("a singular matrix is taken for positive definite")
	}
}
