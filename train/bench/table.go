package bench

import (
	"fmt"
	"io"

	"onlinerna/internal/terminal"
	"onlinerna/internal/text"
	"onlinerna/train/profile"
)

// WriteTable writes r for people.
func (r *Result) WriteTable(w io.Writer) error {
	b := terminal.NewPage(w)
	r.head(b)
	r.speeds(b)
	r.kinds(b)
	r.notes(b)
	return b.Flush(w)
}

// head names the work and the device.
func (r *Result) head(b *terminal.Page) {
	fmt.Fprintf(b, "%s, %s, batch %d of %d×%d×%d, %d parameters\n", r.Model, r.work(), r.Batch, r.ImageSize, r.ImageSize,
		r.Channels, r.Parameters)
	fmt.Fprintf(b, "device %s", r.Device)
	if r.Threads > 0 {
		fmt.Fprintf(b, ", %d threads of level %s", r.Threads, r.Level)
	}
	switch {
	case r.Card != "":
		fmt.Fprintf(b, ", %s, %s", r.Card, r.Precision)
	case r.Precision != "" && r.Precision != "float32":
		fmt.Fprintf(b, ", products of %s", r.Precision)
	}
	if r.Float32 != "" {
		fmt.Fprintf(b, ", products of float32 by %s where that is faster", r.Float32)
	}
	if r.Winograd {
		b.WriteString(", Winograd convolutions")
	}
	if r.LowMemory {
		b.WriteString(", low memory")
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

// speeds writes the speed of steps and their memory.
func (r *Result) speeds(b *terminal.Page) {
	rows := [][]string{{"", "median", "min", "quartiles", "", "max"}}
	for _, x := range []struct {
		name string
		s    Spread
	}{{"images/s", r.Images}, {"GFLOP/s", r.GFLOPS}, {"ms a step", r.Seconds.times(1e3)}} {
		rows = append(rows, []string{x.name, text.Number(x.s.Median), text.Number(x.s.Min), text.Number(x.s.Q1),
			text.Number(x.s.Q3), text.Number(x.s.Max)})
	}
	b.Table(rows)
	if cpu := r.Usage.User + r.Usage.System; cpu > 0 {
		fmt.Fprintf(b, "\na step: %s s of processors at %s GFLOP/s, %s s of them in the system; %.0f page faults",
			text.Number(cpu), text.Number(r.GFLOP/cpu), text.Number(r.Usage.System), r.Usage.Faults)
		if r.Memory > 0 {
			fmt.Fprintf(b, "; peak resident set %.0f MB", float64(r.Memory)/1e6)
		}
		b.WriteByte('\n')
	}
	if r.DeviceMemory > 0 {
		fmt.Fprintf(b, "memory of the device: %s at most\n", gigabytes(r.DeviceMemory))
	}
	if r.CardState != nil {
		fmt.Fprintf(b, "the card: %v\n", r.CardState)
		if len(r.CardState.Slowed) > 0 {
			b.WriteString("It was slowed down: cooled or with more power it is faster.\n")
		}
	}
	if len(r.Inputs) > 1 {
		rows = [][]string{{"input", "images/s", "min", "max", "waited"}}
		for _, i := range r.Inputs {
			rows = append(rows, []string{i.Input, text.Number(i.Images.Median), text.Number(i.Images.Min),
				text.Number(i.Images.Max), text.Percent(i.Waited)})
		}
		b.WriteByte('\n')
		b.Table(rows)
	}
}

// kinds writes the kinds of ops, a row each.
func (r *Result) kinds(b *terminal.Page) {
	if r.KindSteps != len(r.Steps) || len(r.Limits) > 0 {
		fmt.Fprintf(b, "\nkinds of ops, by the device's clock in %d steps of their own:\n", r.KindSteps)
	}

	b.WriteByte('\n')
	b.Table(profile.Table(r.Kinds, r.Products, r.bandwidth()))
	b.WriteByte('\n')
}

// notes explain the columns.
func (r *Result) notes(b *terminal.Page) {
	for i, l := range r.Limits {
		what := l.Name
		if i == 0 {
			what = "peak, " + what
		}
		fmt.Fprintf(b, "%s: %s %s, %s\n", what, text.Number(l.Speed), l.Unit, l.How)
	}
	if r.Peak > 0 && len(r.Limits) == 0 {
		fmt.Fprintf(b, "peak: %.0f GFLOP/s, %s by all threads\n", r.Peak, r.units())
	}
	if len(r.Limits) == 0 {
		fmt.Fprintf(b, "triad: %.1f GB/s, v ← v + a·x of vectors of %d million elements\n", r.Triad, triadElements>>20)
	}
	if r.Winograd {
		b.WriteString("GFLOP: those of the direct convolutions, of which Winograd's need about a third\n")
	}
	b.WriteString("of roofline: the time that the limits allow, for the products or for the bytes, over that taken\n")
	b.WriteString("GB: the least traffic; all products: convolutions, linear layers and their gradients\n")
}

// units names the instructions of the peak.
func (r *Result) units() string {
	if r.Float32 != "" {
		return "multiply-adds of whole tiles on registers, as many of bfloat16 as one of float32 takes,"
	}
	return "multiply-adds of whole vectors on registers"
}

// bandwidth names the measurement that limits memory traffic.
func (r *Result) bandwidth() string {
	if len(r.Limits) > 0 {
		return "copy"
	}
	return "triad"
}

func (s Spread) times(a float64) Spread {
	return Spread{a * s.Min, a * s.Q1, a * s.Median, a * s.Q3, a * s.Max}
}
