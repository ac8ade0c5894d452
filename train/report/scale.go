package report

import (
	"math"
	"strconv"

	"gonum.org/v1/plot"

	"onlinerna/train/network"
)

// span is the range of an axis. It is logarithmic if values differ by factors, and values of 0 lie at its lower end.
type span struct {
	lo, hi    float64
	log, zero bool
}

// spanOf returns the range of all values. The training loss keeps falling long after the others: it may leave the panel
// at the lower end.
func spanOf(list []series, value func(network.Score) float64) span {
	all := span{lo: math.Inf(1), hi: math.Inf(-1)}
	trained, positive := math.Inf(1), math.Inf(1)
	for _, s := range list {
		for _, v := range s.scores {
			y := value(v)
			switch {
			case !finite(y):
				continue
			case s.kind == training:
				trained = min(trained, y)
			default:
				all.lo = min(all.lo, y)
				if y > 0 {
					positive = min(positive, y)
				}
			}
			all.hi = max(all.hi, y)
		}
	}
	switch {
	case !finite(all.hi):
		return span{lo: 0, hi: 1}
	case !finite(all.lo):
		all.lo, positive = trained, trained
	}
	if all.zero = all.lo <= 0 && finite(positive); all.zero {
		all.lo = positive / 2
	}
	const factor = 4 // ratio from which the axis is logarithmic
	if all.log = all.lo > 0 && all.hi/all.lo > factor; all.log {
		if !all.zero {
			all.lo = max(min(all.lo, trained), all.lo/3)
			all.lo *= math.Pow(all.hi/all.lo, -0.04)
		}
		all.hi *= math.Pow(all.hi/all.lo, 0.04)
		return all
	}
	if all.zero {
		all.lo, all.zero = 0, false
	}
	all.lo = max(min(all.lo, trained), 0)
	pad := (all.hi - all.lo) / 20
	if equal(all.lo, all.hi) {
		pad = max(1e-3, all.hi/10)
	}
	all.lo, all.hi = max(0, all.lo-pad), all.hi+pad
	return all
}

// equal reports whether values differ by rounding at most, as a mean of equal values does from them.
func equal(a, b float64) bool { return math.Abs(b-a) <= 1e-9*max(math.Abs(a), math.Abs(b)) }

// at is the position of a value on a linear axis. The logarithm is taken here, since plot's logarithmic axes omit the
// label in the middle.
func (s span) at(y float64) float64 {
	if !s.log {
		return y
	}
	least := s.lo / 100 // below the panel: training may reach 0
	if s.zero {
		least = s.lo
	}
	return math.Log10(max(y, least))
}

// set sets the range of an axis.
func (s span) set(a *plot.Axis) {
	a.Min, a.Max = s.at(s.lo), s.at(s.hi)
	if s.log {
		a.Tick.Marker = plot.TickerFunc(func(float64, float64) []plot.Tick { return s.ticks() })
		a.Label.Text += " (log scale)"
	}
}

// ticks returns the marks of a logarithmic axis: round numbers, four or more of them.
func (s span) ticks() (list []plot.Tick) {
	for _, digits := range [][]float64{{1}, {1, 3}, {1, 2, 5}, {1, 1.5, 2, 3, 4, 5, 6, 8}} {
		list = nil
		for e := math.Floor(math.Log10(s.lo)); e <= math.Log10(s.hi); e++ {
			for _, d := range digits {
				x, _ := strconv.ParseFloat(strconv.FormatFloat(d*math.Pow(10, e), 'g', 3, 64), 64)
				if x >= s.lo && x <= s.hi {
					list = append(list, plot.Tick{Value: s.at(x), Label: strconv.FormatFloat(x, 'g', -1, 64)})
				}
			}
		}
		if len(list) >= 4 {
			break
		}
	}
	if s.zero {
		list = append([]plot.Tick{{Value: s.at(s.lo), Label: "0"}}, list...)
	}
	return list
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
