package rna_test

import (
	"encoding/json"
	"fmt"
	"log"
	"math"

	"gonum.org/v1/gonum/mat"

	"onlinerna/rna"
)

// quadratic is f(w) = ½ Σ h_i w_i² with curvatures from 1e-2 to 1, and step is gradient descent on it.
type quadratic []float64

func newQuadratic(d int) quadratic {
	h := make(quadratic, d)
	for i := range h {
		h[i] = math.Pow(10, -2*float64(i)/float64(d-1))
	}
	return h
}

func (h quadratic) step(y []float64) []float64 {
	x := make([]float64, len(y))
	for i := range y {
		x[i] = y[i] - h[i]*y[i]
	}
	return x
}

func (h quadratic) value(w []float64) float64 {
	f := 0.0
	for i := range w {
		f += h[i] * w[i] * w[i] / 2
	}
	return f
}

func (h quadratic) start() []float64 {
	w := make([]float64, len(h))
	for i := range w {
		w[i] = 1
	}
	return w
}

// Offline: gradient descent runs untouched, and each iterate is pushed. The
// extrapolated point is a better one beside it.
func Example_offline() {
	f := newQuadratic(50)
	space, err := rna.NewHost64(len(f), 0)
	if err != nil {
		log.Fatal(err)
	}
	window, err := rna.NewWindow(space, 10)
	if err != nil {
		log.Fatal(err)
	}
	defer window.Close()

	w := f.start()
	if err := window.Push(rna.Slice64(w)); err != nil { // y_0
		log.Fatal(err)
	}
	for range 40 {
		w = f.step(w)
		if err := window.Push(rna.Slice64(w)); err != nil {
			log.Fatal(err)
		}
	}

	best := make([]float64, len(f))
	res, err := window.Extrapolate(rna.Slice64(best), rna.Options{})
	if err != nil {
		log.Fatal(err)
	}
	if res.Status != rna.OK {
		best = w // res.Err() says why
	}
	fmt.Println("residuals:", len(res.C))
	fmt.Printf("gradient descent: %.0e\n", f.value(w))
	fmt.Printf("extrapolated:     %.0e\n", f.value(best))
	// Output:
	// residuals: 10
	// gradient descent: 3e-02
	// extrapolated:     2e-03
}

// Online: each gradient step starts from the extrapolated point (the
// paper's online acceleration).
func Example_online() {
	f := newQuadratic(50)
	space, err := rna.NewHost64(len(f), 0)
	if err != nil {
		log.Fatal(err)
	}
	window, err := rna.NewWindow(space, 10)
	if err != nil {
		log.Fatal(err)
	}
	defer window.Close()

	plain := f.start()
	y := f.start()
	for range 40 {
		plain = f.step(plain)

		x := f.step(y)
		if err := window.PushPair(rna.Slice64(y), rna.Slice64(x)); err != nil {
			log.Fatal(err)
		}
		copy(y, x) // stays when there is no extrapolation
		if _, err := window.Extrapolate(rna.Slice64(y), rna.Options{}); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Printf("gradient descent: %.0e\n", f.value(plain))
	fmt.Printf("online RNA:       %.0e\n", f.value(y))
	// Output:
	// gradient descent: 3e-02
	// online RNA:       1e-06
}

// Gradients as residuals: with r = −∇f(y) and β the step size, y⁺ = Y c − β ∇F c.
func ExampleWindow_PushResidual() {
	f := newQuadratic(50)
	space, err := rna.NewHost64(len(f), 0)
	if err != nil {
		log.Fatal(err)
	}
	window, err := rna.NewWindow(space, 10)
	if err != nil {
		log.Fatal(err)
	}
	defer window.Close()

	const rate = 0.5
	w := f.start()
	for range 40 {
		r := make([]float64, len(w))
		for i := range r {
			r[i] = -f[i] * w[i]
		}
		if err := window.PushResidual(rna.Slice64(w), rna.Slice64(r)); err != nil {
			log.Fatal(err)
		}
		for i := range w {
			w[i] += rate * r[i]
		}
	}
	best := make([]float64, len(f))
	res, err := window.Extrapolate(rna.Slice64(best), rna.Options{Lambda: rna.Set(1e-8), Beta: rna.Set(rate)})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Status, f.value(best) < f.value(w)/5)
	// Output: ok true
}

// CNA: ‖c‖ is bounded, and the result says which λ does the same.
func ExampleSpectrum_Constrain() {
	// Residuals 1 and 2: R c = 0 asks for c = (2, −1), with ‖c‖ = √5.
	spectrum := rna.Factor(mat.NewSymDense(2, []float64{1, 2, 2, 4}))
	for _, tau := range []float64{0, 0.5, 1} {
		res := spectrum.Constrain(tau)
		fmt.Printf("τ = %-3g c = %.3f  ‖c‖ = %.3f  λ = %.3f\n", tau, res.C, res.NormC, res.Lambda)
	}
	res := spectrum.Solve(1)
	fmt.Printf("λ = 1   c = %.3f  τ = %.3f\n", res.C, res.Tau)
	// Output:
	// τ = 0   c = [0.500 0.500]  ‖c‖ = 0.707  λ = +Inf
	// τ = 0.5 c = [1.059 -0.059]  ‖c‖ = 1.061  λ = 0.168
	// τ = 1   c = [1.366 -0.366]  ‖c‖ = 1.414  λ = 0.073
	// λ = 1   c = [0.636 0.364]  τ = 0.037
}

// Anderson acceleration, λ = 0, of x = 2y + 1: two residuals are enough to find the fixed
// point -1 of a method that diverges. They depend on each other, and still determine c.
func ExampleOptions_anderson() {
	space, err := rna.NewHost64(1, 1)
	if err != nil {
		log.Fatal(err)
	}
	window, err := rna.NewWindow(space, 2)
	if err != nil {
		log.Fatal(err)
	}
	for _, v := range []float64{0, 1, 3} {
		if err := window.Push(rna.Slice64{v}); err != nil {
			log.Fatal(err)
		}
	}
	y := rna.Slice64{3}
	res, err := window.Extrapolate(y, rna.Options{Lambda: rna.Set(0)})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%v, c = %.0f, y⁺ = %.3f\n", res.Status, res.C, y[0])
	// Output: ok, c = [2 -1], y⁺ = -1.000
}

// A QR of the residuals has the digits that their Gram matrix lacks at λ = 0. It, too, serves every λ and τ.
func ExampleWindow_QR() {
	f := newQuadratic(50)
	space, err := rna.NewHost64(len(f), 0)
	if err != nil {
		log.Fatal(err)
	}
	window, err := rna.NewWindow(space, 10)
	if err != nil {
		log.Fatal(err)
	}
	defer window.Close()
	w := f.start()
	for range 11 {
		if err := window.Push(rna.Slice64(w)); err != nil {
			log.Fatal(err)
		}
		w = f.step(w)
	}
	qr, err := window.QR(0)
	if err != nil {
		log.Fatal(err)
	}
	for _, res := range []rna.Result{qr.Solve(0), qr.Constrain(9), window.Spectrum(0).Solve(0)} {
		fmt.Printf("%v: λ = %.0g, ‖c‖ = %.0g\n", res.Status, res.Lambda, res.NormC)
	}
	// Output:
	// ok: λ = 0, ‖c‖ = 4e+04
	// ok: λ = 3e-05, ‖c‖ = 3
	// rank deficient: λ = 0, ‖c‖ = 0
}

// A window is saved as its state, which goes through JSON exactly, and its vectors.
func ExampleRestore() {
	space, err := rna.NewHost64(2, 1)
	if err != nil {
		log.Fatal(err)
	}
	window, err := rna.NewWindow(space, 3)
	if err != nil {
		log.Fatal(err)
	}
	for _, v := range []rna.Slice64{{0, 0}, {1, 2}, {1.5, 2.5}} {
		if err := window.Push(v); err != nil {
			log.Fatal(err)
		}
	}
	text, err := json.Marshal(window.State())
	if err != nil {
		log.Fatal(err)
	}
	vectors := make([]rna.Slice64, window.Vectors())
	for i := range vectors {
		vectors[i] = make(rna.Slice64, space.Dim())
		if err := window.Vector(i).ReadAt64(vectors[i], 0); err != nil {
			log.Fatal(err)
		}
	}

	var state rna.State
	if err := json.Unmarshal(text, &state); err != nil {
		log.Fatal(err)
	}
	again, err := rna.Restore(space, state, func(i int) (rna.Source, error) { return vectors[i], nil })
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(again.Len(), "residuals in", again.Vectors(), "vectors")
	// Output: 2 residuals in 3 vectors
}

// λ chosen by a function, here f itself: never worse than the iterate or the average.
func ExampleWindow_Search() {
	f := newQuadratic(50)
	space, err := rna.NewHost64(len(f), 0)
	if err != nil {
		log.Fatal(err)
	}
	window, err := rna.NewWindow(space, 10)
	if err != nil {
		log.Fatal(err)
	}
	defer window.Close()
	w := f.start()
	for range 40 {
		if err := window.Push(rna.Slice64(w)); err != nil {
			log.Fatal(err)
		}
		w = f.step(w)
	}
	point := make([]float64, len(f))
	choice, err := window.Search(rna.Slice64(point), func() ([]float64, error) {
		return []float64{f.value(point)},
			nil
	}, rna.SearchOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%v with λ = %g\n", choice.Kind, choice.Result.Lambda)
	for _, c := range choice.Candidates[:2] {
		fmt.Printf("%-8v %.0e\n", c.Kind, c.Value)
	}
	fmt.Printf("chosen   %.0e\n", f.value(point))
	// Output:
	// extrapolated with λ = 1e-12
	// kept     3e-02
	// averaged 4e-02
	// chosen   1e-03
}

// A window in files, for vectors that do not fit in memory together.
func ExampleNewFile32() {
	space, err := rna.NewFile32("", 1_000_000, 0)
	if err != nil {
		log.Fatal(err)
	}
	window, err := rna.NewWindow(space, 3)
	if err != nil {
		log.Fatal(err)
	}
	defer window.Close() // removes the files
	w := make(rna.Slice32, space.Dim())
	for k := range 4 {
		for i := range w {
			w[i] = 1 - float32(math.Pow(0.5, float64(k)))
		}
		if err := window.Push(w); err != nil {
			log.Fatal(err)
		}
	}
	res, err := window.Extrapolate(w, rna.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%v, y⁺ = %.4f\n", res.Status, w[0])
	// Output: ok, y⁺ = 1.0000
}

// One decomposition serves a grid of λ; only the candidates asked for are combined.
func ExampleSpectrum() {
	space, err := rna.NewHost64(1, 1)
	if err != nil {
		log.Fatal(err)
	}
	window, err := rna.NewWindow(space, 2)
	if err != nil {
		log.Fatal(err)
	}
	for _, v := range []float64{0, 1, 3} {
		if err := window.Push(rna.Slice64{v}); err != nil {
			log.Fatal(err)
		}
	}
	spectrum := window.Spectrum(0)
	for _, lambda := range []float64{1e-3, 1, math.Inf(1)} {
		fmt.Printf("λ = %-5g c = %.3f\n", lambda, spectrum.Solve(lambda).C)
	}
	// Output:
	// λ = 0.001 c = [1.985 -0.985]
	// λ = 1     c = [0.636 0.364]
	// λ = +Inf  c = [0.500 0.500]
}
