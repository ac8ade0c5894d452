package bench

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// WriteTable writes r for people.
func (r *Result) WriteTable(w io.Writer) error {
	var b strings.Builder
	r.head(&b)
	r.speeds(&b)
	r.kinds(&b)
	r.notes(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

// head says what was measured, and where.
func (r *Result) head(b *strings.Builder) {
	fmt.Fprintf(b, "%s, %s, batch %d of %d×%d×%d, %d parameters\n", r.Model, r.work(), r.Batch, r.ImageSize, r.ImageSize, r.Channels, r.Parameters)
	fmt.Fprintf(b, "device %s", r.Device)
	if r.Threads > 0 {
		fmt.Fprintf(b, ", %d threads of level %s", r.Threads, r.Level)
	}
	if r.Card != "" {
		fmt.Fprintf(b, ", %s, %s", r.Card, r.Precision)
	}
	if r.Winograd {
		b.WriteString(", Winograd convolutions")
	}
	fmt.Fprintf(b, "; %s; %s", r.Processor, r.Software)
	if r.Load > 0 {
		fmt.Fprintf(b, "; load %.1f", r.Load)
	}
	if r.Fit != "" {
		fmt.Fprintf(b, "\n%s", r.Fit)
	}
	fmt.Fprintf(b, "\n%d steps after %d to warm up, %.4g GFLOP each\n\n", len(r.Steps), r.Warmup, r.GFLOP)

}

// speeds are those of steps, and what they used.
func (r *Result) speeds(b *strings.Builder) {
	rows := [][]string{{"", "median", "min", "quartiles", "", "max"}}
	for _, x := range []struct {
		name string
		s    Spread
	}{{"images/s", r.Images}, {"GFLOP/s", r.GFLOPS}, {"ms a step", r.Seconds.times(1e3)}} {
		rows = append(rows, []string{x.name, number(x.s.Median), number(x.s.Min), number(x.s.Q1), number(x.s.Q3), number(x.s.Max)})
	}
	writeColumns(b, rows)
	if cpu := r.Usage.User + r.Usage.System; cpu > 0 {
		fmt.Fprintf(b, "\na step: %s s of processors at %s GFLOP/s, %s s of them in the system; %.0f page faults", number(cpu), number(r.GFLOP/cpu), number(r.Usage.System), r.Usage.Faults)
		if r.Memory > 0 {
			fmt.Fprintf(b, "; peak resident set %.0f MB", float64(r.Memory)/1e6)
		}
		b.WriteByte('\n')
	}
	if r.DeviceMemory > 0 {
		fmt.Fprintf(b, "memory of the device: %s at most\n", gigabytes(r.DeviceMemory))
	}
	if len(r.Inputs) > 1 {
		rows = [][]string{{"input", "images/s", "min", "max", "waited"}}
		for _, i := range r.Inputs {
			rows = append(rows, []string{i.Input, number(i.Images.Median), number(i.Images.Min), number(i.Images.Max), percent(i.Waited)})
		}
		b.WriteByte('\n')
		writeColumns(b, rows)
	}
}

// kinds are the kinds of ops, a row each.
func (r *Result) kinds(b *strings.Builder) {
	if r.KindSteps != len(r.Steps) || len(r.Limits) > 0 {
		fmt.Fprintf(b, "\nkinds of ops, by the device's clock in %d steps of their own:\n", r.KindSteps)
	}

	rows := [][]string{{"", "calls", "ms", "share", "GFLOP", "GFLOP/s", "of peak", "GB", "GB/s", "of " + r.bandwidth(), "of roofline"}}
	for _, k := range r.Kinds {
		rows = append(rows, k.row())
	}
	rows = append(rows, r.Products.row())
	b.WriteByte('\n')
	writeColumns(b, rows)
	b.WriteByte('\n')
}

// notes say what the columns go by.
func (r *Result) notes(b *strings.Builder) {
	for i, l := range r.Limits {
		what := l.Name
		if i == 0 {
			what = "peak, " + what
		}
		fmt.Fprintf(b, "%s: %s %s, %s\n", what, number(l.Speed), l.Unit, l.How)
	}
	if r.Peak > 0 && len(r.Limits) == 0 {
		fmt.Fprintf(b, "peak: %.0f GFLOP/s, multiply-adds of whole vectors on registers by all threads\n", r.Peak)
	}
	if len(r.Limits) == 0 {
		fmt.Fprintf(b, "triad: %.1f GB/s, v ← v + a·x of vectors of %d million elements\n", r.Triad, triadElements>>20)
	}
	if r.Winograd {
		b.WriteString("GFLOP: those of the direct convolutions, of which Winograd's need about a third\n")
	}
	b.WriteString("of roofline: the time that the limits allow, for the products or for the bytes, over that taken\n")
	b.WriteString("GB: what has to be moved at least; all products: convolutions, linear layers and their gradients\n")
}

// bandwidth names what the memory's limit was measured by.
func (r *Result) bandwidth() string {
	if len(r.Limits) > 0 {
		return "copy"
	}
	return "triad"
}

// row shows a kind with products by its operations and another by its bytes.
func (k *Kind) row() []string {
	row := []string{k.Name, fmt.Sprint(k.Calls), number(1e3 * k.Seconds), percent(k.Share), "", "", "", "", "", "", percent(k.OfRoofline)}
	switch {
	case k.GFLOP > 0:
		row[4], row[5], row[6] = number(k.GFLOP), number(k.GFLOPS), percent(k.OfPeak)
	case k.GB > 0:
		row[7], row[8], row[9] = number(k.GB), number(k.GBS), percent(k.OfTriad)
	}
	return row
}

func (s Spread) times(a float64) Spread {
	return Spread{a * s.Min, a * s.Q1, a * s.Median, a * s.Q3, a * s.Max}
}

// number writes three digits or more, without an exponent.
func number(x float64) string {
	switch {
	case x == 0:
		return "0"
	case x >= 100:
		return fmt.Sprintf("%.0f", x)
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	case x >= 1:
		return fmt.Sprintf("%.2f", x)
	}
	return fmt.Sprintf("%.3f", x)
}

func percent(x float64) string {
	if x == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f %%", 100*x)
}

// writeColumns aligns the first column to the left, the others to the right.
func writeColumns(b *strings.Builder, rows [][]string) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		line := ""
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				line += cell + pad
			} else {
				line += "  " + pad + cell
			}
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}
