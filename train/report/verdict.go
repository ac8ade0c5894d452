package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"onlinerna/train"
	"onlinerna/train/network"
)

// verdict says which weights of the run are the best, those of best.safetensors, and how far they are below the iterate of their epoch and the next best
// of that. It is empty where nothing was compared.
func verdict(c train.Config, history []train.EpochRecord) string {
	best := history[len(history)-1].Best
	if best == nil {
		return ""
	}
	by, format, value := train.ByError, "%.2f", network.Score.Error
	if c.BestBy == train.ByLoss {
		by, format, value = train.ByLoss, "%.4f", func(s network.Score) float64 { return s.Loss }
	}
	var list []train.ScoreRecord
	images := onValidation
	var rec train.EpochRecord
	for _, r := range history {
		if r.Epoch == best.Epoch {
			var held bool
			if list, held = r.Ranking(by); held {
				images = onHeldOut
			}
			rec = r
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Best by %s %s: %s, epoch %d, "+format, images, by, nameOf(c, best.ScoreRecord), best.Epoch, value(best.Score))
	unit := ""
	if by == train.ByError {
		b.WriteString(" %")
		unit = " points"
	}
	below := func(s train.ScoreRecord, which string) {
		d := value(s.Score) - value(best.Score)
		name := which + nameOf(c, s)
		if which == "" && best.Epoch != history[len(history)-1].Epoch {
			name += " of that epoch" // the table shows the last one
		}
		if d == 0 {
			fmt.Fprintf(&b, ", level with %s", name)
			return
		}
		fmt.Fprintf(&b, ", "+format+"%s below %s", d, unit, name)
		if by != train.ByError {
			return
		}
		if d > standardError(s.Score) {
			b.WriteString(" (more than the standard error)")
		} else {
			b.WriteString(" (within the standard error)")
		}
	}
	is := func(x train.ScoreRecord) bool { return same(x, best.ScoreRecord) }
	if i := slices.IndexFunc(list, func(x train.ScoreRecord) bool { return x.Kind == network.SGD }); i >= 0 && !is(list[i]) {
		below(list[i], "")
	}
	if i := slices.IndexFunc(list, func(x train.ScoreRecord) bool { return !is(x) }); i >= 0 && list[i].Kind != network.SGD {
		below(list[i], "the next, ")
	}
	if images == onHeldOut {
		if i := slices.IndexFunc(rec.Scores(), is); i >= 0 {
			s := rec.Scores()[i].Score
			fmt.Fprintf(&b, "; on validation images error %.2f %%, loss %s", s.Error(), lossText(s.Loss))
		}
	}
	if c.Out != "" {
		b.WriteString("; kept as best.safetensors")
	}
	return b.String() + ".\n"
}

// same says whether two scores are of the same weights of an epoch.
func same(x, y train.ScoreRecord) bool { return x.Kind == y.Kind && x.Snapshots == y.Snapshots }

// standardError is that of an error in points.
func standardError(s network.Score) float64 {
	if s.Images == 0 {
		return math.Inf(1)
	}
	p := s.Error() / 100
	return 100 * math.Sqrt(p*(1-p)/float64(s.Images))
}
