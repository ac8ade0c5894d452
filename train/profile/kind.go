package profile

import (
	"fmt"
	"math"
	"slices"

	"onlinerna/internal/text"
)

// Kind is the cost of all groups with the same ops in a step: medians over the steps.
type Kind struct {
	Name    string  `json:"name"` // of the ops, such as "batch_norm + relu"
	Calls   int     `json:"calls"`
	Seconds float64 `json:"seconds"`
	Share   float64 `json:"share"` // of the time of all steps

	GFLOP  float64 `json:"gflop,omitempty"`
	GFLOPS float64 `json:"gflop_per_s,omitempty"` // GFLOP / Seconds
	OfPeak float64 `json:"of_peak,omitempty"`     // GFLOPS / the limit of products

	// GB is the least data to move, in gigabytes: each input of a group is read once, each output written once.
	GB      float64 `json:"gb,omitempty"`
	GBS     float64 `json:"gb_per_s,omitempty"` // GB / Seconds
	OfTriad float64 `json:"of_triad,omitempty"` // GBS / the memory's bandwidth

	// OfRoofline is the time that the limits allow, GFLOP / Peak or GB / Triad, whichever is longer, over Seconds.
	OfRoofline float64 `json:"of_roofline,omitempty"`
}

func newKind(name string, steps []tally, total, peak, triad float64) Kind {
	all := seconds(steps)
	k := Kind{
		Name: name, Seconds: median(all), Share: sum(all) / total,
		Calls: int(math.Round(median(each(steps, func(t tally) float64 { return float64(t.calls) })))),
		GFLOP: median(each(steps, func(t tally) float64 { return float64(t.flops) })) / 1e9,
		GB:    median(each(steps, func(t tally) float64 { return float64(t.bytes) })) / 1e9,
	}
	if k.Seconds > 0 {
		k.GFLOPS, k.GBS = k.GFLOP/k.Seconds, k.GB/k.Seconds
	}
	if peak > 0 {
		k.OfPeak = 1e9 * k.GFLOPS / peak
	}
	if triad > 0 {
		k.OfTriad = 1e9 * k.GBS / triad
	}
	k.OfRoofline = max(k.OfPeak, k.OfTriad)
	return k
}

// Table shows kinds as rows beside the limits. bandwidth names the measurement of the memory's limit; if it is "",
// Table leaves out the limits.
func Table(kinds []Kind, products Kind, bandwidth string) [][]string {
	rows := [][]string{{"", "calls", "ms", "share", "GFLOP", "GFLOP/s", "of peak", "GB", "GB/s", "of " + bandwidth,
		"of roofline"}}
	for _, k := range append(slices.Clip(kinds), products) {
		rows = append(rows, k.row())
	}
	if bandwidth == "" {
		for i, r := range rows {
			rows[i] = append(slices.Clone(r[:6]), r[7:9]...)
		}
	}
	return rows
}

// row shows a kind's FLOP columns if it has products, and its bytes otherwise.
func (k *Kind) row() []string {
	row := []string{k.Name, fmt.Sprint(k.Calls), text.Number(1e3 * k.Seconds), text.Percent(k.Share), "", "", "", "", "",
		"", text.Percent(k.OfRoofline)}
	switch {
	case k.GFLOP > 0:
		row[4], row[5], row[6] = text.Number(k.GFLOP), text.Number(k.GFLOPS), text.Percent(k.OfPeak)
	case k.GB > 0:
		row[7], row[8], row[9] = text.Number(k.GB), text.Number(k.GBS), text.Percent(k.OfTriad)
	}
	return row
}

// median is the median of a non-empty list, interpolated linearly.
func median(list []float64) float64 {
	s := slices.Sorted(slices.Values(list))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

func sum(list []float64) (s float64) {
	for _, x := range list {
		s += x
	}
	return s
}
