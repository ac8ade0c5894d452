// Package report presents the results of a run: tables and plots of the SGD iterate, the extrapolated weights and plain
// averages.
package report

import (
	"fmt"
	"slices"

	"gonum.org/v1/plot/vg/draw"

	"onlinerna/train"
	"onlinerna/train/hook"
	"onlinerna/train/network"
)

// series is one kind of weights over the epochs.
type series struct {
	kind   network.Kind
	rank   int // among those of its kind
	name   string
	style  draw.LineStyle        // of a group of runs, without a kind; runs without a name are not in the legend
	scores map[int]network.Score // by epoch
}

// Names of the images on which weights are compared.
const (
	onValidation = "validation"
	onHeldOut    = "held-out"
)

// judgeOf names the images on which a run's weights are compared: the held-out ones if there are no others.
func judgeOf(history []hook.EpochRecord) string {
	judge := onValidation
	for _, r := range history {
		if r.SGD != nil {
			return onValidation
		}
		if len(r.Held) > 0 {
			judge = onHeldOut
		}
	}
	return judge
}

// collect sorts the records of a run by kind of weights, SGD first. Kinds that were never scored are left out.
func collect(c train.Spec, history []hook.EpochRecord) []series {
	var list []series
	for _, kind := range []network.Kind{network.SGD, network.SGDStats, network.RNA, network.EMA} {
		list = append(list, series{kind: kind, name: nameOf(c, hook.ScoreRecord{Kind: kind})})
	}
	for i, k := range c.RNA.Averages {
		list = append(list, series{kind: network.Average, rank: i, name: nameOf(c, hook.ScoreRecord{Kind: network.Average,
			Snapshots: k})})
	}
	judge := judgeOf(history)
	var scored []series
	for _, s := range list {
		s.scores = map[int]network.Score{}
		for _, r := range history {
			if v := s.score(c, r, judge); v != nil {
				s.scores[r.Epoch] = *v
			}
		}
		if len(s.scores) > 0 {
			scored = append(scored, s)
		}
	}
	return scored
}

// nameOf returns the full name of a run's weights.
func nameOf(c train.Spec, s hook.ScoreRecord) string {
	switch s.Kind {
	case network.SGDStats:
		return c.OptimizerName() + ", BatchNorm recalibrated"
	case network.RNA:
		return fmt.Sprintf("RNA of the last %d %s, %s", c.RNA.Window, snapshots(c), c.RNA.Mode)
	case network.EMA:
		if c.EMADecay > 0 {
			return fmt.Sprintf("EMA, decay %.8g", c.EMADecay)
		}
		return fmt.Sprintf("power EMA, γ = %g", c.ScoredEMA())
	case network.Average:
		return fmt.Sprintf("average of the last %d", s.Snapshots)
	}
	return s.Name(c.OptimizerName())
}

// snapshots describes the combination of RNA.
func snapshots(c train.Spec) string {
	switch {
	case c.RNA.SegmentMeans:
		return "means"
	case c.RNA.PerEpoch > 1:
		return "snapshots"
	}
	return "epochs"
}

// score returns the score of this kind of weights in a record, on the images that judge names.
func (s series) score(c train.Spec, r hook.EpochRecord, judge string) *network.Score {
	list := r.Scores()
	if judge == onHeldOut {
		list = r.Held
	}
	for _, x := range slices.Backward(list) { // the newest
		if x.Kind == s.kind && (s.kind != network.Average || x.Snapshots == c.RNA.Averages[s.rank]) {
			return &x.Score
		}
	}
	return nil
}

// Drawable reports whether there is an evaluated epoch to draw.
func Drawable(c train.Spec, history []hook.EpochRecord) bool {
	list := collect(c, history)
	return len(list) > 0
}

// phaseEnds lists the epochs in the summary: the ends of the schedule's phases, as far as the run got.
func phaseEnds(c train.Spec, history []hook.EpochRecord) []int {
	if len(history) == 0 {
		return nil
	}
	last := history[len(history)-1].Epoch
	var ends []int
	for _, e := range c.Schedule.PhaseEnds() {
		if e < last {
			ends = append(ends, e)
		}
	}
	ends = append(ends, last)
	if k := len(ends); k > 3 { // more columns do not fit
		ends = ends[k-3:]
	}
	return ends
}
