package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"onlinerna/internal/stat"
	"onlinerna/train"
	"onlinerna/train/network"
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

// standardError returns the standard error of an error, in points.
func standardError(s network.Score) float64 {
	if s.Images == 0 {
		return math.Inf(1)
	}
	p := s.Error() / 100
	return 100 * math.Sqrt(p*(1-p)/float64(s.Images))
}

// sameImages reports whether two runs are compared on the same images.
func sameImages(a, b Finished) bool {
	x, y := a.Config, b.Config
	split := x.ValSplit > 0 || judgeOf(a.History) == onHeldOut
	return judgeOf(a.History) == judgeOf(b.History) && x.Data == y.Data && x.ValData == y.ValData &&
		x.ValSplit == y.ValSplit && (!split || x.Seed == y.Seed && x.Holdout == y.Holdout)
}

// A group holds runs that differ only in their seed.
type group struct {
	letters []byte
	runs    []Finished
}

func (g group) String() string { return strings.Join(strings.Split(string(g.letters), ""), ", ") }

// seedGroups sorts runs with a finished epoch into groups, ordered by their first runs.
func seedGroups(runs []Finished) (groups []group) {
	options := train.Options()
	var keys []string
	for i, r := range runs {
		if r.last() == nil {
			continue
		}
		var key strings.Builder
		for k := range options {
			if o := &options[k]; o.Name != "out" && o.Name != "seed" {
				fmt.Fprintf(&key, "%s\x00", o.Text(&r.Config))
			}
		}
		at := slices.Index(keys, key.String())
		if at < 0 {
			at, keys, groups = len(keys), append(keys, key.String()), append(groups, group{})
		}
		groups[at].letters, groups[at].runs = append(groups[at].letters, byte('A'+i)), append(groups[at].runs, r)
	}
	return groups
}

// overSeeds writes intervals over seeds: of groups with several runs, and of their differences from the first group on
// common seeds.
func overSeeds(b *strings.Builder, runs []Finished) {
	groups := seedGroups(runs)
	if !slices.ContainsFunc(groups, func(g group) bool { return len(g.runs) > 1 }) {
		return
	}
	b.WriteString("\nOver seeds, error of the last epoch and of the best, 95 % intervals by Student's t:\n")
	line := func(name string, last, best []float64) {
		fmt.Fprintf(b, "%s: %s", name, interval(last))
		if len(best) == len(last) {
			fmt.Fprintf(b, ", best %s", interval(best))
		}
		b.WriteByte('\n')
	}
	for i, g := range groups {
		var last, best []float64
		for _, r := range g.runs {
			last = append(last, r.last().Error())
			if x := r.best(); x != nil {
				best = append(best, x.Error())
			}
		}
		line(g.String(), last, best)
		if i == 0 {
			continue
		}
		last, best = nil, nil
		for _, r := range g.runs {
			k := slices.IndexFunc(groups[0].runs, func(x Finished) bool { return x.Config.Seed == r.Config.Seed })
			if k < 0 {
				continue
			}
			first := groups[0].runs[k]
			last = append(last, r.last().Error()-first.last().Error())
			if x, y := r.best(), first.best(); x != nil && y != nil {
				best = append(best, x.Error()-y.Error())
			}
		}
		if len(last) > 1 {
			line(fmt.Sprintf("%s less %s, by seed", g, groups[0]), last, best)
		}
	}
}

// interval writes a mean in points and half of its interval.
func interval(x []float64) string {
	mean, half := stat.Interval(x)
	if len(x) < 2 {
		return fmt.Sprintf("%.2f (one seed)", mean)
	}
	return fmt.Sprintf("%s ± %.2f", cmp.Or(strings.TrimPrefix(signed(mean), "+"), "0.00"), half)
}
