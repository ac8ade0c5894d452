package study

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"

	"onlinerna/internal/terminal"
	"onlinerna/rna/convex"
	"onlinerna/rna/convex/figure"
)

// Table prints the final f − f* of each run and when it came within 1e-6 and 1e-10 of f*.
func (s *Study) Table(out io.Writer) error {
	rows := [][]string{{"METHOD", "F − F*", strings.ToUpper(s.unit()) + "S TO 1E-6", "SECONDS", "TO 1E-10", "SECONDS",
		"SECONDS IN ALL"}}
	if s.validated() {
		rows[0] = append(rows[0], "VALIDATION ERROR")
	}
	for _, r := range s.Runs {
		last := len(r.Values) - 1
		if last < 0 {
			rows = append(rows, []string{r.Name, "none"})
			continue
		}
		row := []string{r.Name, fmt.Sprintf("%.2e", s.Gap(r))}
		for _, goal := range []float64{1e-6, 1e-10} {
			at, seconds := "-", "-"
			for k, v := range r.Values {
				if v-s.Best.Value <= goal {
					at, seconds = strconv.Itoa(r.At[k]), fmt.Sprintf("%.3g", r.Seconds[k])
					break
				}
			}
			row = append(row, at, seconds)
		}
		row = append(row, fmt.Sprintf("%.3g", r.Seconds[last]))
		if len(r.Wrong) > 0 {
			row = append(row, fmt.Sprintf("%.2f %%", r.Wrong[len(r.Wrong)-1]))
		}
		rows = append(rows, row)
	}
	page := terminal.NewPage(out)
	page.Table(rows)
	return page.Flush(out)
}

// CSV writes the curves in the long form of the published ones.
func (s *Study) CSV(out io.Writer) error {
	w := csv.NewWriter(out)
	header := []string{"method", s.unit(), "f_minus_fstar"}
	if s.validated() {
		header = append(header, "validation_error")
	}
	w.Write(header)
	for _, r := range s.Runs {
		for k, v := range r.Values {
			row := []string{r.Name, strconv.Itoa(r.At[k]), strconv.FormatFloat(v-s.Best.Value, 'g', 17, 64)}
			if len(header) > 3 {
				row = append(row, strconv.FormatFloat(r.Wrong[k], 'g', -1, 64))
			}
			w.Write(row)
		}
	}
	w.Flush()
	return w.Error()
}

// Draw shows f − f* by iterations as SVG, and by seconds or the validation error. The runs of [Anderson] have a panel
// for online and one for offline RNA.
func (s *Study) Draw(out io.Writer, format string) error {
	for _, r := range s.Runs {
		if strings.HasPrefix(r.Name, "online, ") {
			return s.drawAnderson(out, format)
		}
	}
	left := figure.Panel{X: s.unit(), Y: "f − f*", Log: true}
	right := figure.Panel{X: "seconds", Y: "f − f*", Log: true}
	for _, r := range s.Runs {
		y, at := make([]float64, len(r.Values)), make([]float64, len(r.Values))
		for k, v := range r.Values {
			y[k], at[k] = v-s.Best.Value, float64(r.At[k])
		}
		left.Curves = append(left.Curves, figure.Curve{Name: r.Name, X: at, Y: y})
		if len(r.Wrong) > 0 {
			right.X, right.Y, right.Log = s.unit(), "validation error, %", false
			right.Curves = append(right.Curves, figure.Curve{Name: r.Name, X: at, Y: r.Wrong})
		} else {
			right.Curves = append(right.Curves, figure.Curve{Name: r.Name, X: r.Seconds, Y: y})
		}
	}
	return figure.Draw(out, format, s.Title, left, right)
}

func (s *Study) drawAnderson(out io.Writer, format string) error {
	panels := []figure.Panel{{Title: "online", X: s.unit(), Y: "f − f*", Log: true},
		{Title: "offline", X: s.unit(), Y: "f − f*", Log: true}}
	for _, r := range s.Runs {
		c := figure.Curve{Name: r.Name}
		for k, v := range r.Values {
			c.X, c.Y = append(c.X, float64(r.At[k])), append(c.Y, v-s.Best.Value)
		}
		for i := range panels {
			if name, found := strings.CutPrefix(r.Name, panels[i].Title); found || r.Method == convex.GD {
				if found {
					c.Name = strings.TrimPrefix(name, ", ")
				}
				panels[i].Curves = append(panels[i].Curves, c)
			}
		}
	}
	return figure.Draw(out, format, s.Title, panels...)
}
