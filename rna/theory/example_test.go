package theory_test

import (
	"fmt"
	"log"

	"onlinerna/rna/theory"
)

// Ten residuals gain a sure factor on a linear method with κ = 0.01; bounded coefficients keep a part of it.
func ExampleConstrainedChebyshev() {
	const n, kappa = 10, 0.01
	fmt.Printf("λ = 0:   %.4f\n", theory.ChebyshevRate(n, kappa))
	for _, tau := range []float64{10, 1, 0} {
		_, value, err := theory.ConstrainedChebyshev(n, kappa, tau)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("τ = %-3g  %.4f\n", tau, value)
	}
	// Output:
	// λ = 0:   0.3200
	// τ = 10   0.7678
	// τ = 1    0.9084
	// τ = 0    0.9562
}
