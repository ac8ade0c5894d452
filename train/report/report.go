// Package report shows what a run brought: a table and a plot of the weights that SGD reached, of the
// extrapolated ones and of plain averages.
package report

import (
	"fmt"

	"onlinerna/train"
)

// series is one kind of weights over the epochs.
type series struct {
	name   string
	scores map[int]train.Score // by epoch
}

// collect sorts the records of a run by kind of weights. Kinds that were never scored are left out.
func collect(c train.Config, history []train.EpochRecord) []series {
	var list []series
	at := map[string]int{}
	add := func(name string, epoch int, s *train.Score) {
		if s == nil {
			return
		}
		i, ok := at[name]
		if !ok {
			i = len(list)
			at[name] = i
			list = append(list, series{name, map[int]train.Score{}})
		}
		list[i].scores[epoch] = *s
	}
	// A first pass over the kinds fixes their order.
	names := []string{sgd, sgdStats, rnaName(c)}
	for _, k := range c.RNA.Averages {
		names = append(names, averageName(k))
	}
	for _, name := range names {
		for _, r := range history {
			switch {
			case name == sgd:
				add(name, r.Epoch, r.SGD)
			case name == sgdStats:
				add(name, r.Epoch, r.SGDStats)
			case name == rnaName(c) && r.RNA != nil:
				add(name, r.Epoch, r.RNA.Score)
			default:
				for _, a := range r.Averages {
					if averageName(a.Epochs) == name {
						add(name, r.Epoch, &a.Score)
					}
				}
			}
		}
	}
	return list
}

// Drawable says whether there is anything to draw: two evaluated epochs or more.
func Drawable(c train.Config, history []train.EpochRecord) bool {
	list := collect(c, history)
	return len(list) > 0 && len(list[0].scores) > 1
}

const (
	sgd      = "SGD"
	sgdStats = "SGD, statistics re-estimated"
)

func rnaName(c train.Config) string {
	return fmt.Sprintf("RNA of the last %d epochs, %s", c.RNA.Window, c.RNA.Mode)
}

func averageName(k int) string { return fmt.Sprintf("average of the last %d", k) }

// phaseEnds lists the epochs at which the run is summed up: the ends of the schedule's phases, as far as it came.
func phaseEnds(c train.Config, history []train.EpochRecord) []int {
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
	if k := len(ends); k > 3 { // more than fit beside each other
		ends = ends[k-3:]
	}
	return ends
}
