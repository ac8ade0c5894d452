package report

import (
	"fmt"
	"math"
	"strings"

	"onlinerna/train/network"
)

// verdict says which kind of weights is best in an epoch, by validation error and by loss, and by how much. List
// starts with SGD. It is empty where there is nothing to compare.
func verdict(list []series, epoch int) string {
	sgd, ok := list[0].scores[epoch]
	if !ok {
		return ""
	}
	beyond := func(points float64) string {
		if points > standardError(sgd) {
			return " (more than the standard error)"
		}
		return " (within the standard error)"
	}
	return rank(list, epoch, "error", "%.2f points", network.Score.Error, beyond) +
		rank(list, epoch, "loss", "%.4f", func(s network.Score) float64 { return s.Loss }, func(float64) string { return "" })
}

// rank compares the best by one value with SGD and with the next. Remark comments on a difference.
func rank(list []series, epoch int, by, format string, value func(network.Score) float64, remark func(float64) string) string {
	best, next := -1, -1
	at := func(i int) float64 { return value(list[i].scores[epoch]) }
	for i, s := range list {
		v, ok := s.scores[epoch]
		switch {
		case !ok || !finite(value(v)):
		case best < 0 || at(i) < at(best):
			best, next = i, best
		case next < 0 || at(i) < at(next):
			next = i
		}
	}
	if next < 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Best by %s: %s", by, list[best].name)
	below := func(i int, which string) {
		d := at(i) - at(best)
		if d == 0 {
			fmt.Fprintf(&b, ", level with %s", list[i].name)
			return
		}
		fmt.Fprintf(&b, ", "+format+" below %s%s%s", d, which, list[i].name, remark(d))
	}
	if best != 0 && finite(at(0)) {
		below(0, "")
	}
	if next != 0 {
		below(next, "the next, ")
	}
	b.WriteString(".\n")
	return b.String()
}

// standardError is that of an error in points.
func standardError(s network.Score) float64 {
	if s.Images == 0 {
		return math.Inf(1)
	}
	p := s.Error() / 100
	return 100 * math.Sqrt(p*(1-p)/float64(s.Images))
}
