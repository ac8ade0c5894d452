// Command serve evaluates the problems of package fixedpoint for solvers in other languages, line by line on the
// standard input: "kinds" lists them, "problem KIND SEED" answers the start, a line of numbers x answers g(x) or
// "fail", and "solve TOLERANCE MOST" answers how many evaluations plain iteration and rna.Solve take.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"onlinerna/rna"
	"onlinerna/rna/internal/fixedpoint"
)

func main() {
	kinds := slices.Concat(fixedpoint.Kinds(), fixedpoint.Others())
	var p fixedpoint.Problem
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	out := bufio.NewWriter(os.Stdout)
	write := func(x []float64) {
		for _, v := range x {
			fmt.Fprintf(out, "%s ", strconv.FormatFloat(v, 'g', -1, 64))
		}
		fmt.Fprintln(out)
		out.Flush()
	}
	for in.Scan() {
		words := strings.Fields(in.Text())
		switch {
		case len(words) == 1 && words[0] == "kinds":
			for _, k := range kinds {
				fmt.Fprintln(out, k.Name)
			}
			fmt.Fprintln(out)
			out.Flush()
		case len(words) == 3 && words[0] == "problem":
			kind, _ := strconv.Atoi(words[1])
			seed, _ := strconv.ParseUint(words[2], 10, 64)
			p = kinds[kind].New(seed)
			write(p.Start)
		case len(words) == 3 && words[0] == "solve":
			tolerance, _ := strconv.ParseFloat(words[1], 64)
			most, _ := strconv.Atoi(words[2])
			plain, _ := p.Plain(tolerance, most)
			s, err := rna.Solve(context.Background(), p.G, slices.Clone(p.Start),
				rna.SolveOptions{Tolerance: tolerance, Accept: p.Accept, MaxEvaluations: most})
			evaluations := 0
			if err == nil && s.Converged {
				evaluations = s.Evaluations
			}
			write([]float64{float64(plain), float64(evaluations)})
		default:
			x, y := make([]float64, len(words)), make([]float64, len(words))
			for i, w := range words {
				x[i], _ = strconv.ParseFloat(w, 64)
			}
			if len(x) != len(p.Start) || p.Accept != nil && !p.Accept(x) || p.G(y, x) != nil {
				fmt.Fprintln(out, "fail")
				out.Flush()
				continue
			}
			write(y)
		}
	}
}
