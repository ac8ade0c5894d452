package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"

	"onlinerna/rna"
	"onlinerna/train/hook"
)

// CoefficientTable writes RNA's coefficients: a line for each epoch in which it extrapolated, nothing if it never did.
// The plain average has the coefficients 1/N.
func CoefficientTable(w io.Writer, history []hook.EpochRecord) error {
	if !Extrapolated(history) {
		return nil
	}
	fmt.Fprintln(w, "RNA coefficients:")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\t\tweight of\t\tdistance from\tthat of\tnoise in\t")
	fmt.Fprintln(t, "epoch\tsnapshots\tthe newest\tnorm\tplain average\tnoise alone\tresiduals\t")
	for _, r := range history {
		if r.RNA == nil || len(r.RNA.C) == 0 {
			continue
		}
		n := len(r.RNA.C)
		distance, noise, share := "-", "-", "-"
		if d := r.RNA.Distance; d != nil {
			distance = fmt.Sprintf("%.3f", *d)
		}
		if d := r.RNA.NoiseDistance; d != nil {
			noise, share = fmt.Sprintf("%.3f", *d), fmt.Sprintf("%.0f %%", 100*r.RNA.Noise)
		}
		fmt.Fprintf(t, "%d\t%d\t%.2f\t%.2f\t%s\t%s\t%s\t\n", r.Epoch, n, r.RNA.C[n-1], r.RNA.NormC, distance, noise, share)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	sizes := map[int]bool{}
	for _, r := range history {
		if r.RNA != nil && len(r.RNA.C) > 1 {
			sizes[len(r.RNA.C)] = true
		}
	}
	for _, n := range slices.Sorted(maps.Keys(sizes)) {
		fmt.Fprintf(w, "Of %d iterates that scatter about a point, c is a parabola at the distance %.3f.\n", n+1,
			rna.FromUniform(rna.StationaryCoefficients(n)))
	}
	return nil
}
