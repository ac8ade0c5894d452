// Package plantable is the table of NVIDIA's cuDNN plans for the graphs of nets, made without a card: cudnncheck writes
// it, and docs/gpu.md has its totals. A line has a graph's precision, name and convolution, a cell for each card, and
// the models with the graph, separated by tabs.
package plantable

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// Table has rows by key.
type Table struct {
	Version string   // of cuDNN
	Cards   []string // the columns
	Rows    map[string]*Row
}

// Row is a graph with its plans on each card.
type Row struct {
	Precision, Graph, Shape string
	Models                  []string
	Cells                   map[string]string // by card: "38+4 e62 131", or a note instead of a plan
}

// Key identifies a row.
func (r *Row) Key() string { return strings.Join([]string{r.Precision, r.Graph, r.Shape}, "\t") }

// The beginnings of the first two lines.
const (
	versionLine = "# cuDNN "
	columns     = "precision\tgraph\tconvolution\t"
)

// Read reads a table from a file.
func Read(file string) (*Table, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	t, err := Parse(string(b))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return t, nil
}

// Parse parses a table.
func Parse(text string) (*Table, error) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) < 2 || !strings.HasPrefix(lines[0], versionLine) || !strings.HasPrefix(lines[1], columns) {
		return nil, fmt.Errorf("not a table of plans: want lines that begin with %q and %q", versionLine, columns)
	}
	t := &Table{Version: strings.TrimPrefix(lines[0], versionLine), Rows: map[string]*Row{}}
	head := strings.Split(lines[1], "\t")
	if len(head) < 5 || head[len(head)-1] != "models" {
		return nil, fmt.Errorf("line 2: %q, want cards and models", lines[1])
	}
	t.Cards = head[3 : len(head)-1]
	for i, line := range lines[2:] {
		fields := strings.Split(line, "\t")
		if len(fields) != len(head) {
			return nil, fmt.Errorf("line %d: %d columns, want %d: %q", i+3, len(fields), len(head), line)
		}
		r := &Row{Precision: fields[0], Graph: fields[1], Shape: fields[2], Models: strings.Fields(fields[len(head)-1]),
			Cells: map[string]string{}}
		for k, c := range t.Cards {
			r.Cells[c] = fields[3+k]
		}
		t.Rows[r.Key()] = r
	}
	return t, nil
}

// Row returns the row of a graph, which it adds if missing, and adds the model to it.
func (t *Table) Row(precision, graph, shape, model string) *Row {
	r := &Row{Precision: precision, Graph: graph, Shape: shape, Cells: map[string]string{}}
	if old, ok := t.Rows[r.Key()]; ok {
		r = old
	}
	t.Rows[r.Key()] = r
	if !slices.Contains(r.Models, model) {
		r.Models = append(r.Models, model)
	}
	return r
}

// Update replaces t's cells by those of another table for the same graphs and cards; all others stay. Both must be of
// the same cuDNN, and t must have the other's cards. Models are sorted in the given order.
func (t *Table) Update(by *Table, order []string) error {
	if by.Version != t.Version {
		return fmt.Errorf("the table is for cuDNN %s, and this is %s: make the whole table again", t.Version,
			by.Version)
	}
	for _, c := range by.Cards {
		if !slices.Contains(t.Cards, c) {
			return fmt.Errorf("the table has no column for %s, only for %s: make the whole table again", c,
				strings.Join(t.Cards, ", "))
		}
	}
	for key, r := range by.Rows {
		old, ok := t.Rows[key]
		if !ok {
			t.Rows[key] = r
			continue
		}
		maps.Copy(old.Cells, r.Cells)
		for _, m := range r.Models {
			if !slices.Contains(old.Models, m) {
				old.Models = append(old.Models, m)
			}
		}
		slices.SortStableFunc(old.Models, func(a, b string) int {
			return slices.Index(order, a) - slices.Index(order,
				b)
		})
	}
	return nil
}

// String is the table's text.
func (t *Table) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s\n%s%s\tmodels\n", versionLine, t.Version, columns, strings.Join(t.Cards, "\t"))
	for _, key := range slices.Sorted(maps.Keys(t.Rows)) {
		r := t.Rows[key]
		b.WriteString(key)
		for _, c := range t.Cards {
			b.WriteString("\t" + r.cell(c))
		}
		b.WriteString("\t" + strings.Join(r.Models, " ") + "\n")
	}
	return b.String()
}

func (r *Row) cell(card string) string { return cmp.Or(r.Cells[card], "-") }

// Differences compares another table's graphs and cards with t. A cell that only lists configurations there may have a
// plan in t.
func (t *Table) Differences(other *Table) (lines []string, cells int) {
	if other.Version != t.Version {
		lines = append(lines, fmt.Sprintf("cuDNN %s, the table is for %s", other.Version, t.Version))
	}
	for _, key := range slices.Sorted(maps.Keys(other.Rows)) {
		for _, c := range other.Cards {
			cells++
			got, want := other.Rows[key].cell(c), ""
			if r, ok := t.Rows[key]; ok {
				want = r.Cells[c]
			}
			counts, listed := strings.CutSuffix(got, " listed")
			if got != want && !(listed && strings.HasPrefix(want, counts+" ")) {
				lines = append(lines, fmt.Sprintf("%s, %s: %q, the table has %q", key, c, got, want))
			}
		}
	}
	return lines, cells
}

// attention reports whether the graph is one of attention.
func (r *Row) attention() bool { return strings.HasPrefix(r.Graph, "attention") }

// planned reports whether a graph has plans on all cards.
func (t *Table) planned(r *Row) bool {
	return !slices.ContainsFunc(t.Cards, func(c string) bool { return !strings.Contains(r.Cells[c], " e") })
}

// Attentions states how many graphs of attention have plans on all cards.
func (t *Table) Attentions() string {
	all, planned := 0, 0
	for _, r := range t.Rows {
		if !r.attention() {
			continue
		}
		all++
		if t.planned(r) {
			planned++
		}
	}
	return fmt.Sprintf("cuDNN %s has compiled %d of %d graphs", t.Version, planned, all)
}

// Totals states how many graphs have plans on all cards: convolutions alone, and fused ones.
func (t *Table) Totals() string {
	var all, planned [2]int
	for _, r := range t.Rows {
		several := 0
		if r.attention() {
			continue
		}
		if strings.Contains(r.Graph, "+") {
			several = 1
		}
		all[several]++
		if t.planned(r) {
			planned[several]++
		}
	}
	return fmt.Sprintf("cuDNN %s plans %d of %d convolutions, and has compiled %d of %d fused with the operations "+
		"around them",
		t.Version, planned[0], all[0], planned[1], all[1])
}
