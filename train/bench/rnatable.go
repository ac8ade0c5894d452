package bench

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"onlinerna/internal/terminal"
	"onlinerna/internal/text"
)

// WriteTable writes r for people.
func (r *RNAResult) WriteTable(w io.Writer) error {
	b := terminal.NewPage(w)
	fmt.Fprintf(b, "RNA on vectors of %s float32 elements, %s each; %s", text.Thousands(r.Dim), gigabytes(4*int64(r.Dim)),
		r.Software)
	if r.Load > 0 {
		fmt.Fprintf(b, "; load %.1f", r.Load)
	}
	b.WriteString("\n")
	for _, p := range r.Places {
		fmt.Fprintf(b, "%s: %s; memory of %s GB/s\n", p.Name, p.describe(), text.Number(p.Bandwidth))
		if len(p.LeftOut) > 0 {
			fmt.Fprintf(b, "%s: N = %s are left out, from %s on: %s are free, of which a tenth is left alone\n", p.Name,
				list(p.LeftOut), gigabytes(windowBytes(p.LeftOut[0], r.Dim)), gigabytes(p.Free))
		}
	}
	if r.NoGPU != "" {
		fmt.Fprintf(b, "no GPU: %s\n", r.NoGPU)
	}
	if n := r.Net; n != nil {
		fmt.Fprintf(b, "\nforward + backward of %s on %s", n.Model, n.Device)
		if n.Threads > 0 {
			fmt.Fprintf(b, ", %s of level %s", text.Count(n.Threads, "thread"), n.Level)
		}
		fmt.Fprintf(b, ", batch %d of %d×%d×%d: %s, quartiles %s to %s; with SGD's update %s images/s\n",
			n.Batch, n.ImageSize, n.ImageSize, n.Channels, seconds(n.Seconds.Median), seconds(n.Seconds.Q1),
			seconds(n.Seconds.Q3), text.Number(n.Images))
		fmt.Fprintf(b, "batch %d: %s\n", n.Batch, n.Why)
	}
	b.WriteString("\n")
	r.writePasses(b)
	r.explain(b)
	if n := r.Net; n != nil {
		b.WriteString("\n")
		r.writeEpoch(b)
	}
	return b.Flush(w)
}

// describe names the device and its threads.
func (p *RNAPlace) describe() string {
	if p.Threads > 0 {
		return p.Device + ", " + text.Count(p.Threads, "thread")
	}
	return p.Device
}

func (r *RNAResult) writePasses(b *terminal.Page) {
	head := []string{"pass", "N", "held", "ms", "quartiles", "", "Gram", "solve", "combine", "GB", "GB/s", "of memory",
		"readings"}
	if r.Net != nil {
		head = append(head, "of f + b")
	}
	rows := [][]string{head}
	for _, p := range r.sorted() {
		s := p.Seconds.times(1e3)
		row := []string{
			p.Place + ", " + p.Pass, fmt.Sprint(p.N), gigabytes(p.Held), text.Number(s.Median), text.Number(s.Q1),
			text.Number(s.Q3),
			text.Number(1e3 * p.Gram), text.Number(1e3 * p.Solve), text.Number(1e3 * p.Combine),
			text.Number(p.GB), text.Number(p.GBS), text.Percent(p.OfBandwidth), text.Number(p.Readings),
		}
		if r.Net != nil {
			row = append(row, small(100*p.OfNet)+" %")
		}
		rows = append(rows, row)
	}
	b.Table(rows)
}

// sorted returns the passes of each curve in turn.
func (r *RNAResult) sorted() (list []RNAPass) {
	for _, c := range r.curves() {
		list = append(list, c.passes...)
	}
	return list
}

// explain explains passes and columns.
func (r *RNAResult) explain(b *terminal.Page) {
	b.WriteString("\nfull: the Gram matrix of N residuals of N + 1 vectors, the coefficients, the combination\n")
	b.WriteString("online: an iterate enters the full window (a check, a copy, a row of the Gram matrix: under Gram), " +
		"the coefficients, the combination\n")
	for _, p := range r.Passes {
		if p.Pass == HostOnlinePass {
			fmt.Fprintf(b, "%s: the iterate comes from the host's memory, twice, and the combination goes there\n", p.Pass)
			break
		}
	}
	b.WriteString("held: the window's vectors, of one rank where several keep a part each; ms: median of a pass and " +
		"its quartiles, medians of its parts; GB: the least traffic, each vector of a part once;\n")
	b.WriteString("of memory: GB/s over the memory's; readings: times over that of reading the window's vectors once")
	if r.Net != nil {
		b.WriteString("; of f + b: over forward + backward")
	}
	b.WriteString("\n")
	for _, p := range r.Passes {
		if p.OfBandwidth > 1 {
			b.WriteString("more than 100 %: caches hold a part of the window\n")
			break
		}
	}
}

// epochWindow is the N for which RNA is compared with an epoch: the paper's.
const epochWindow = 10

// writeEpoch writes the cost of a pass at the end of each epoch of ImageNet, relative to the epoch.
func (r *RNAResult) writeEpoch(b *terminal.Page) {
	n := r.Net
	fmt.Fprintf(b, "an epoch of ImageNet, %s images, takes %v at %s images/s on %s\n", text.Thousands(imageNet),
		duration(n.Epoch), text.Number(n.Images), n.Device)
	for _, place := range r.Places {
		for _, name := range []string{FullPass, OnlinePass, HostOnlinePass} {
			var best *RNAPass // the N closest to the paper's
			for i, p := range r.Passes {
				if p.Place == place.Name && p.Pass == name && (best == nil || nearer(p.N, best.N)) {
					best = &r.Passes[i]
				}
			}
			if best != nil {
				fmt.Fprintf(b, "a pass with N = %d at its end (%s, %s) adds %s: %s %% of it\n", best.N, place.Name, name,
					seconds(best.Seconds.Median), small(100*best.OfEpoch))
			}
		}
	}
}

// nearer reports whether a is closer to the paper's window than b.
func nearer(a, b int) bool {
	return math.Abs(float64(a-epochWindow)) < math.Abs(float64(b-epochWindow))
}

// duration rounds seconds for display.
func duration(s float64) string {
	d := time.Duration(s * float64(time.Second))
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%.1f days", d.Hours()/24)
	case d >= time.Hour:
		return fmt.Sprintf("%.1f h", d.Hours())
	case d >= time.Minute:
		return fmt.Sprintf("%.1f min", d.Minutes())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

// seconds formats a short time.
func seconds(s float64) string {
	if s < 1 {
		return text.Number(1e3*s) + " ms"
	}
	return text.Number(s) + " s"
}

// small formats x with at least two digits, however small it is.
func small(x float64) string {
	if x >= 10 || x <= 0 {
		return fmt.Sprintf("%.0f", x)
	}
	return strconv.FormatFloat(x, 'f', max(0, 1-int(math.Floor(math.Log10(x)))), 64)
}

func list(v []int) string { return strings.Trim(strings.ReplaceAll(fmt.Sprint(v), " ", ", "), "[]") }
