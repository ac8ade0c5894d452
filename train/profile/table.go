package profile

import (
	"fmt"
	"io"

	"onlinerna/internal/terminal"
	"onlinerna/internal/text"
)

// layersShown is the number of layers with a row of their own; the others share one row.
const layersShown = 20

// WriteTable writes p, with at least one step, as text tables.
func (p *Profile) WriteTable(w io.Writer) error {
	b := terminal.NewPage(w)
	a := p.About
	line := fmt.Sprintf("Profile of steps %d to %d: %s with %s, batch %d of %d×%d", p.First, p.First+p.Steps()-1, a.Model,
		a.Optimizer, a.Batch, a.ImageSize, a.ImageSize)
	if a.Accumulate > 1 {
		line += fmt.Sprintf(", %d batches a step", a.Accumulate)
	}
	line += ", on " + a.Device
	if a.Ranks > 1 {
		line += fmt.Sprintf(", as rank %d of %d", a.Rank, a.Ranks)
	}
	step := p.Seconds()
	line += fmt.Sprintf("; a step took %s ms on average", ms(step))
	if p.Plain > 0 {
		line += fmt.Sprintf(", and %s ms those before, of which no part was waited for", ms(p.Plain))
	}
	b.WriteString(line + "\n\n")

	rows := [][]string{{"a step", "ms", "share"}}
	for _, x := range p.Phases() {
		rows = append(rows, []string{x.Name, ms(x.Seconds), text.Percent(x.Seconds / step)})
	}
	b.Table(append(rows, []string{"all", ms(step), "100.0 %"}))
	if len(p.between) > 0 {
		rows = [][]string{{"between steps", "times", "ms"}}
		for _, x := range p.between {
			rows = append(rows, []string{x.name, fmt.Sprint(x.calls), ms(x.seconds)})
		}
		b.WriteByte('\n')
		b.Table(rows)
	}
	b.WriteByte('\n')
	b.Table(Table(p.kinds.sum()))
	p.layerTable(b, step)
	b.WriteString("\nother: the time in no other row: copies of results, and the tables themselves. " +
		"ms of kinds of ops: the median step. " +
		"GB: bytes that have to be moved at least. Layers that run as one kernel count for the first of them.\n")
	return b.Flush(w)
}

func (p *Profile) layerTable(b *terminal.Page, step float64) {
	rows := [][]string{{"layer", "forward ms", "backward ms", "share"}}
	var others Layer
	list := p.Layers()
	for i, l := range list {
		if i < layersShown || len(list) == layersShown+1 {
			rows = append(rows, l.row(step))
			continue
		}
		others.Name = fmt.Sprintf("%d others", i-layersShown+1)
		others.Forward += l.Forward
		others.Backward += l.Backward
	}
	if others.Name != "" {
		rows = append(rows, others.row(step))
	}
	b.WriteByte('\n')
	b.Table(rows)
}

func (l *Layer) row(step float64) []string {
	return []string{l.Name, ms(l.Forward), ms(l.Backward), text.Percent((l.Forward + l.Backward) / step)}
}

func ms(s float64) string { return text.Number(1e3 * s) }

// sum is Table's input without limits.
func (k *Kinds) sum() ([]Kind, Kind, string) {
	list, products := k.Sum(0, 0)
	return list, products, ""
}
