package rna_test

import (
	"fmt"
	"log"
	"math"

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
