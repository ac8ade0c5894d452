package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"onlinerna/data"
	"onlinerna/train"
	"onlinerna/train/hook"
	"onlinerna/train/network"
)

// verdict names the best weights of the run, those of best.safetensors, and their distance below the iterate of their
// epoch and the next best there. It is empty if nothing was compared.
func verdict(c train.Spec, history []hook.EpochRecord) string {
	best := history[len(history)-1].Best
	if best == nil {
		return ""
	}
	m := measureOf(c.Task)
	by, name, format, value := hook.ByError, m.name, m.points, m.value
	if m.unit == "" {
		format = "%.4g"
	}
	if c.BestBy == hook.ByLoss {
		by, name, format, value = hook.ByLoss, hook.ByLoss, "%.4f", func(s network.Score) float64 { return s.Loss }
	}
	var list []hook.ScoreRecord
	images := onValidation
	var rec hook.EpochRecord
	for _, r := range history {
		if r.Epoch == best.Epoch {
			var held bool
			if list, held = r.Ranking(by); held {
				images = onHeldOut
			}
			rec = r
		}
	}
	better := "below"
	if by == hook.ByError && c.Task == data.MultiLabel {
		better = "above"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Best by %s %s: %s, epoch %d, "+format, images, name, nameOf(c, best.ScoreRecord), best.Epoch,
		value(best.Score))
	if by == hook.ByError && m.unit != "" {
		b.WriteString(" %")
	}
	below := func(s hook.ScoreRecord, which string) {
		d := math.Abs(value(s.Score) - value(best.Score))
		g := between(s.Score, best.Score)
		name := which + nameOf(c, s)
		if which == "" && best.Epoch != history[len(history)-1].Epoch {
			name += " of that epoch" // the table shows the last epoch
		}
		if d == 0 {
			fmt.Fprintf(&b, ", level with %s", name)
			return
		}
		if by != hook.ByError || !classifies(c) {
			fmt.Fprintf(&b, ", "+format+" %s %s", d, better, name)
			return
		}
		fmt.Fprintf(&b, ", %.2f ± %.2f points below %s (%s)", d, g.deviation, name, g.how(tried(history)-1))
	}
	is := func(x hook.ScoreRecord) bool { return same(x, best.ScoreRecord) }
	if i := slices.IndexFunc(list, func(x hook.ScoreRecord) bool { return x.Kind == network.SGD }); i >= 0 &&
		!is(list[i]) {
		below(list[i], "")
	}
	if i := slices.IndexFunc(list, func(x hook.ScoreRecord) bool { return !is(x) }); i >= 0 &&
		list[i].Kind != network.SGD {
		below(list[i], "the next, ")
	}
	if images == onHeldOut {
		if i := slices.IndexFunc(rec.Scores(), is); i >= 0 {
			s := rec.Scores()[i].Score
			fmt.Fprintf(&b, "; on validation images %s %s, loss %s", m.name,
				strings.ReplaceAll(m.show(s), "\u00a0", " "), lossText(s.Loss))
			if rec.SGD != nil && classifies(c) && !is(hook.ScoreRecord{Kind: network.SGD}) {
				g := between(s, *rec.SGD)
				fmt.Fprintf(&b, ", %s ± %.2f points to %s (%s)", signed(g.points), g.deviation,
					nameOf(c, hook.ScoreRecord{Kind: network.SGD}), g.how(1))
			}
		}
	}
	if c.Out != "" {
		b.WriteString("; kept as best.safetensors")
	}
	return b.String() + ".\n"
}

// classifies reports whether a run is for classification.
func classifies(c train.Spec) bool { return c.Task == "" || c.Task == data.Classification }

// tried returns the number of candidates for the run's best weights.
func tried(history []hook.EpochRecord) (n int) {
	for _, r := range history {
		list, _ := r.Ranking(hook.ByError)
		n += len(list)
	}
	return n
}

// same reports whether two scores belong to the same weights of an epoch.
func same(x, y hook.ScoreRecord) bool { return x.Kind == y.Kind && x.Snapshots == y.Snapshots }
