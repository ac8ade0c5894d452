package report

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"onlinerna/internal/terminal"
	"onlinerna/rna/convex/figure"
	"onlinerna/train"
	"onlinerna/train/hook"
	"onlinerna/train/network"
)

// A Study is the paper's comparison on one net (its figure on ImageNet): runs from one seed, one with offline RNA,
// whose iterates are those of standard training, and one with online RNA, which continues from the extrapolated points.
type Study struct {
	Config          train.Spec // of the run with offline RNA
	Offline, Online []hook.EpochRecord
}

// curve is a kind of weights of one of the runs.
type curve struct {
	name    string
	history []hook.EpochRecord
	rna     bool
}

func (s Study) curves() []curve {
	return []curve{{"standard", s.Offline, false}, {"offline RNA", s.Offline, true}, {"online RNA", s.Online, true}}
}

// at returns the score of an epoch, by its index in the history. If nothing was extrapolated an online run has the
// score of its iterate.
func (c curve) at(i int) *network.Score {
	if i >= len(c.history) {
		return nil
	}
	r := c.history[i]
	switch {
	case !c.rna:
		return r.SGD
	case r.RNA != nil && r.RNA.Score != nil:
		return r.RNA.Score
	case c.name == "online RNA":
		return r.SGD
	}
	return nil
}

// Table writes the validation error of each epoch, and the distance of the coefficients from the average.
func (s Study) Table(w io.Writer) error {
	j := errorOf(s.Config)
	unit := cmp.Or(strings.TrimSpace(j.unit), j.name)
	rows := [][]string{{"epoch", "rate", "standard " + unit, "offline RNA " + unit, "online RNA " + unit, "‖c − 1/N‖",
		"of noise alone", "noise"}}
	for i, r := range s.Offline {
		row := []string{fmt.Sprint(r.Epoch), fmt.Sprintf("%.3g", r.Rate)}
		for _, c := range s.curves() {
			cell := "-"
			if v := c.at(i); v != nil {
				cell = fmt.Sprintf(j.format, v.Error())
			}
			row = append(row, cell)
		}
		cells := []string{"-", "-", "-"}
		if x := r.RNA; x != nil {
			if x.Distance != nil {
				cells[0] = fmt.Sprintf("%.3f", *x.Distance)
			}
			if x.NoiseDistance != nil {
				cells[1], cells[2] = fmt.Sprintf("%.3f", *x.NoiseDistance), fmt.Sprintf("%.0f %%", 100*x.Noise)
			}
		}
		rows = append(rows, append(row, cells...))
	}
	b := terminal.NewPage(w)
	b.Table(rows)
	return b.Flush(w)
}

// Plot writes a figure with the validation errors of standard training, offline and online RNA, and the distance of c
// from the average.
func (s Study) Plot(w io.Writer, format string) error {
	panels, err := s.panels()
	if err != nil {
		return err
	}
	return figure.Draw(w, format, title(s.Config), panels...)
}

func (s Study) panels() ([]figure.Panel, error) {
	var wrong, distance []figure.Curve
	for _, c := range s.curves() {
		x := figure.Curve{Name: c.name}
		for i, r := range c.history {
			if v := c.at(i); v != nil {
				x.X, x.Y = append(x.X, float64(r.Epoch)), append(x.Y, v.Error())
			}
		}
		if len(x.X) > 0 {
			wrong = append(wrong, x)
		}
	}
	if len(wrong) == 0 {
		return nil, errors.New("nothing to draw: no epoch was evaluated on validation images")
	}
	measured, noise := figure.Curve{Name: "c of offline RNA"}, figure.Curve{Name: "c of noise alone"}
	for _, r := range s.Offline {
		if x := r.RNA; x != nil && x.Distance != nil {
			measured.X, measured.Y = append(measured.X, float64(r.Epoch)), append(measured.Y, *x.Distance)
		}
		if x := r.RNA; x != nil && x.NoiseDistance != nil {
			noise.X, noise.Y = append(noise.X, float64(r.Epoch)), append(noise.Y, *x.NoiseDistance)
		}
	}
	if len(measured.X) > 0 {
		distance = append(distance, measured)
	}
	if len(noise.X) > 0 {
		distance = append(distance, noise)
	}
	panels := []figure.Panel{{X: "epoch", Y: "validation " + errorOf(s.Config).label(), Curves: wrong}}
	if distance != nil {
		panels = append(panels, figure.Panel{X: "epoch", Y: "distance of c from 1/N", Curves: distance})
	}
	return panels, nil
}
