package terminal

import (
	"io"
	"slices"
	"strings"

	"onlinerna/internal/text"
)

// A Page collects output that is written to w at once: its tables and lines fit the terminal.
type Page struct {
	strings.Builder
	Style   Style
	columns int
}

// NewPage is an empty page for w.
func NewPage(w io.Writer) *Page { return &Page{Style: StyleOf(w), columns: Columns(w)} }

// Table adds rows as [text.Table], with a bold head. If they are wider than the terminal, columns that do not fit
// follow below, after a repeated first column.
func (p *Page) Table(rows [][]string) { p.tables(text.Tables(p.columns, rows)) }

// LeftTable is Table with all columns aligned to the left.
func (p *Page) LeftTable(rows [][]string) { p.tables(text.LeftTables(p.columns, rows)) }

// List is LeftTable whose last column is wrapped where it does not fit.
func (p *Page) List(rows [][]string) {
	last, room := len(rows[0])-1, 0
	if p.columns > 0 {
		room = p.columns
		for i := range last {
			width := 0
			for _, row := range rows {
				width = max(width, text.Width(row[i]))
			}
			room -= width + 2
		}
		room = max(room, 12)
	}
	var all [][]string
	for _, row := range rows {
		for _, line := range strings.Split(text.WrapTo(room, row[last], ""), "\n") {
			row[last] = strings.TrimSpace(line)
			all = append(all, row)
			row = make([]string, len(row))
		}
	}
	p.LeftTable(all)
}

func (p *Page) tables(parts []string) {
	for i, part := range parts {
		if i > 0 {
			p.WriteByte('\n')
		}
		head, rest, _ := strings.Cut(part, "\n")
		p.WriteString(p.Style.Bold(head) + "\n" + rest)
	}
}

// Fit splits items, each with the given number of columns after the first ones, into parts that fit the terminal.
func (p *Page) Fit(items []int, first, each int) [][]int {
	n := len(items)
	if p.columns > 0 {
		n = max(1, (p.columns-first)/each)
	}
	return slices.Collect(slices.Chunk(items, max(n, 1)))
}

// Flush writes the page to w. Lines that are too long for the terminal go on in lines with two spaces more before them.
func (p *Page) Flush(w io.Writer) error {
	var b strings.Builder
	for line := range strings.Lines(p.String()) {
		body := strings.TrimRight(line, "\n")
		if p.columns > 0 && text.Width(body) > p.columns {
			before := body[:len(body)-len(strings.TrimLeft(body, " "))]
			body = before + text.WrapTo(p.columns-len(before), body[len(before):], before+"  ")
		}
		b.WriteString(body + line[len(strings.TrimRight(line, "\n")):])
	}
	_, err := io.WriteString(w, b.String())
	return err
}
