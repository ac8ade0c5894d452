package bench

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"

	"onlinerna/internal/terminal"
	"onlinerna/internal/text"
)

// WriteTable writes t for display: a row for each kind of work, and with layers one for each piece of work.
func (t *Traffic) WriteTable(w io.Writer, layers bool) error {
	b := terminal.NewPage(w)
	how := "at the limits of its data sheet: computed, not measured"
	if !t.Computed {
		how = "by its clock"
	}
	fmt.Fprintf(b, "%s, training at batch %d, on %s; times %s\n\n", t.Model, t.Batch, t.Card, how)
	rows := [][]string{{"", "launches", "GB read", "GB written", "GFLOP", "G instr.", "ms", "GB/s"}}
	for _, r := range append(t.Kinds, t.Step) {
		rows = append(rows, r.cells())
	}
	if t.RNA != nil {
		rows = append(rows, t.RNA.cells())
	}
	b.Table(rows)
	fmt.Fprintf(b, "\nA step is a graph of %d nodes. Normalisation moves %s GB, with its part of graphs of "+
		"convolutions.\n", t.Step.Count, text.Number(float64(t.Norm)/1e9))
	fmt.Fprintf(b, "%s ms a step are %s images/s.\n", text.Number(1e3*t.Step.Seconds),
		text.Number(float64(t.Batch)/t.Step.Seconds))
	if t.Computed {
		fmt.Fprintf(b, "With %.0f %% of the bandwidth and %.0f %% of the peak it is %s ms, %s images/s.\n",
			100*LikelyBandwidth, 100*LikelyPeak,
			text.Number(1e3*t.Likely), text.Number(float64(t.Batch)/t.Likely))
	}
	if t.Bandwidth > 0 {
		fmt.Fprintf(b, "Copies reach %s GB/s.\n", text.Number(t.Bandwidth/1e9))
	}
	if layers {
		rows = [][]string{{"layer", "kind", "MB read", "MB written", "GFLOP", "µs", "GB/s", "work"}}
		for _, x := range t.Works {
			r := TrafficRow{Read: x.Read, Write: x.Write, Seconds: x.Seconds}
			rows = append(rows, []string{x.Layer, x.Kind, text.Number(float64(x.Read) / 1e6),
				text.Number(float64(x.Write) / 1e6), text.Number(float64(x.FLOP) / 1e9),
				text.Number(1e6 * x.Seconds), text.Number(r.speed() / 1e9), x.Name})
		}
		b.WriteByte('\n')
		b.Table(rows)
	}
	return b.Flush(w)
}

func (r *TrafficRow) cells() []string {
	return []string{r.Name, strconv.Itoa(r.Count), text.Number(float64(r.Read) / 1e9),
		text.Number(float64(r.Write) / 1e9), text.Number(float64(r.FLOP) / 1e9),
		text.Number(float64(r.Instructions) / 1e9), text.Number(1e3 * r.Seconds), text.Number(r.speed() / 1e9)}
}

// speed returns bytes per second.
func (r *TrafficRow) speed() float64 {
	if r.Seconds == 0 {
		return 0
	}
	return float64(r.Read+r.Write) / r.Seconds
}

// WriteCSV writes a line for each piece of work of a step.
func (t *Traffic) WriteCSV(w io.Writer) error {
	c := csv.NewWriter(w)
	// errors stay until Flush
	_ = c.Write([]string{"layer", "kind", "name", "read_bytes", "written_bytes", "flop", "instructions",
		"seconds"})
	for _, x := range t.Works {
		_ = c.Write([]string{text.Cell(x.Layer), x.Kind, text.Cell(x.Name), fmt.Sprint(x.Read), fmt.Sprint(x.Write),
			fmt.Sprint(x.FLOP), fmt.Sprint(x.Instructions), strconv.FormatFloat(x.Seconds, 'g', 6, 64)})
	}
	c.Flush()
	return c.Error()
}
