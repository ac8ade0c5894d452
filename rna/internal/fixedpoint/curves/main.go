// Command curves draws the figure of docs/solve.md into a file, by its extension: residuals of plain iteration and of
// rna.Solve over the evaluations of g, on three problems of package fixedpoint.
package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"

	"onlinerna/rna"
	"onlinerna/rna/convex/figure"
	"onlinerna/rna/internal/fixedpoint"
)

const (
	seed      = 100 // not one on which Solve's parameters were chosen
	tolerance = 1e-10
	longest   = 300 // evaluations of plain iteration that are drawn
)

var shown = []string{"EM of overlapping Gaussians", "Sinkhorn", "contraction with a spectrum near 1"}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: curves FILE.svg")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "curves:", err)
		os.Exit(1)
	}
}

func write(path string) error {
	panels, err := draw()
	if err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	format := strings.TrimPrefix(filepath.Ext(path), ".")
	if err := figure.Draw(f, format, "Residuals ‖g(x) − x‖ of fixed-point iterations", panels...); err != nil {
		return err
	}
	return f.Close()
}

// draw solves the problems.
func draw() (panels []figure.Panel, err error) {
	for _, k := range fixedpoint.Kinds() {
		if !slices.Contains(shown, k.Name) {
			continue
		}
		p := k.New(seed)
		plain, solved := figure.Curve{Name: "plain iteration"}, figure.Curve{Name: "rna.Solve"}
		add := func(c *figure.Curve, n int, residual float64) {
			if !math.IsNaN(residual) { // g failed
				c.X, c.Y = append(c.X, float64(n)), append(c.Y, residual)
			}
		}
		x, y := slices.Clone(p.Start), make([]float64, len(p.Start))
		for n := 1; n <= longest; n++ {
			if err := p.G(y, x); err != nil {
				return nil, err
			}
			add(&plain, n, floats.Distance(y, x, 2))
			x, y = y, x
		}
		_, err := rna.Solve(context.Background(), p.G, slices.Clone(p.Start), rna.SolveOptions{
			Tolerance: tolerance, Accept: p.Accept, MaxEvaluations: longest,
			Progress: func(s rna.SolveProgress) { add(&solved, s.Evaluations, s.Residual) },
		})
		if err != nil {
			return nil, err
		}
		panels = append(panels, figure.Panel{Title: k.Name, X: "evaluations of g", Y: "residual", Log: true,
			Curves: []figure.Curve{plain, solved}})
	}
	return panels, nil
}
