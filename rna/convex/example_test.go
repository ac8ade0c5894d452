package convex_test

import (
	"fmt"
	"log"

	"onlinerna/rna/convex"
)

// A function of one's own: f and its gradient are all that is needed.
func ExampleMinimize() {
	f := func(x, grad []float64) (sum float64) {
		for i, v := range x {
			a := 1 / float64(1+i*i) // ill-conditioned
			sum += a * (v - 1) * (v - 1) / 2
			if grad != nil {
				grad[i] = a * (v - 1)
			}
		}
		return sum
	}
	for _, m := range []convex.Method{convex.GD, convex.Online{Of: convex.GD}} {
		res, err := convex.Minimize(convex.Problem{F: f, Dim: 30}, m, convex.Options{Iterations: 200})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s: below 1e-10: %v\n", m, res.Values[200] < 1e-10)
	}
	// Output:
	// gd: below 1e-10: false
	// online_rna_gd: below 1e-10: true
}

// Logistic regression of the embedded data, by samples.
func ExampleMinimizeSum() {
	data, err := convex.Sonar()
	if err != nil {
		log.Fatal(err)
	}
	risk, err := convex.NewRisk(data, convex.Logistic)
	if err != nil {
		log.Fatal(err)
	}
	risk.Reg = 0.1
	best, err := risk.Optimum()
	if err != nil {
		log.Fatal(err)
	}
	res, err := convex.MinimizeSum(risk, convex.Online{Of: convex.SVRG}, convex.Options{Iterations: 60})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("below 1e-12:", res.Values[len(res.Values)-1]-best.Value < 1e-12)
	// Output: below 1e-12: true
}
