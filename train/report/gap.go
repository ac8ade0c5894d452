package report

import (
	"fmt"
	"math"
	"strings"

	"onlinerna/data"
	"onlinerna/internal/stat"
	"onlinerna/train/network"
	"onlinerna/train/runs"
)

// A gap is the difference of two errors in percentage points, with its standard error. If both are known image by image
// on the same images, the error is the paired one and p is from McNemar's exact test; otherwise the error is that of
// two independent sets of images.
type gap struct {
	points, deviation, p float64
	paired               bool
}

// between returns the error of x minus that of y.
func between(x, y network.Score) gap {
	g := gap{points: x.Error() - y.Error(), p: math.NaN()}
	b, c, ok := x.Right.Against(y.Right)
	if ok && x.Images == y.Images {
		g.deviation, g.p, g.paired = 100*stat.Paired(b, c, x.Images), stat.McNemar(b, c), true
		return g
	}
	g.deviation = math.Hypot(standardError(x), standardError(y))
	return g
}

// how describes the significance of the largest of k gaps (Bonferroni's correction).
func (g gap) how(k int) string {
	if !g.paired {
		return "as of two sets of images"
	}
	s := "p " + probability(g.p)
	if k > 1 {
		s += fmt.Sprintf("; %s corrected for the best of %d",
			strings.TrimPrefix(probability(min(1, float64(k)*g.p)), "= "), k+1)
	}
	return s
}

// probability writes "= 0.031" or "< 0.0001".
func probability(p float64) string {
	if p < 1e-4 {
		return "< 0.0001"
	}
	return fmt.Sprintf("= %.2g", p)
}

// standardError returns the standard error of an error, in its unit.
func standardError(s network.Score) float64 {
	if s.Images == 0 {
		return math.Inf(1)
	}
	if s.Task != "" && s.Task != data.Classification {
		return s.Deviation
	}
	p := s.Error() / 100
	return 100 * math.Sqrt(p*(1-p)/float64(s.Images))
}

// sameImages reports whether two runs are compared on the same images.
func sameImages(a, b runs.Run) bool {
	x, y := a.Config, b.Config
	split := x.ValSplit > 0 || judgeOf(a.History) == onHeldOut
	return judgeOf(a.History) == judgeOf(b.History) && x.Data == y.Data && x.ValData == y.ValData &&
		x.ValSplit == y.ValSplit && (!split || x.Seed == y.Seed && x.Holdout == y.Holdout)
}
