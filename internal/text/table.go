package text

import (
	"slices"
	"strings"
)

const columnGap = 2

// Tables aligns the first column of rows to the left, the others to the right, in tables of at most the given number of
// terminal columns, 0 for any width. If a table is too wide, its first column is wrapped; columns that still do not fit
// go to further tables, after a repeated first column and without the rows that have no cell there. The first row is
// the head, with as many cells as the longest row.
func Tables(columns int, rows [][]string) []string { return tables(columns, rows, false) }

// LeftTables is [Tables] with all columns aligned to the left.
func LeftTables(columns int, rows [][]string) []string { return tables(columns, rows, true) }

// Table is one table of any width, as [Tables] makes it.
func Table(rows [][]string) string { return Tables(0, rows)[0] }

func tables(columns int, rows [][]string, left bool) (parts []string) {
	rows = slices.Clone(rows)
	for i, row := range rows {
		rows[i] = make([]string, len(row))
		for k, cell := range row {
			rows[i][k] = Printable(cell)
		}
	}
	widths := make([]int, len(rows[0]))
	all := -columnGap
	for i := range widths {
		for _, row := range rows {
			if i < len(row) {
				widths[i] = max(widths[i], Width(row[i]))
			}
		}
		all += columnGap + widths[i]
	}
	if columns > 0 && all > columns {
		rows = wrapFirst(rows, max(16, columns*2/5))
		widths[0] = 0
		for _, row := range rows {
			widths[0] = max(widths[0], Width(row[0]))
		}
	}
	for from := 1; from == 1 || from < len(widths); {
		end, wide := from, widths[0]
		for end < len(widths) && (end == from || columns == 0 || wide+columnGap+widths[end] <= columns) {
			wide += columnGap + widths[end]
			end++
		}
		parts = append(parts, part(rows, widths, from, end, left))
		if end == from { // a first column alone
			break
		}
		from = end
	}
	return parts
}

// wrapFirst wraps the first cells of rows to a width: each continuation line is a row of one cell.
func wrapFirst(rows [][]string, columns int) (wrapped [][]string) {
	for _, row := range rows {
		lines := strings.Split(WrapTo(columns, row[0], "  "), "\n")
		wrapped = append(wrapped, append(lines[:1:1], row[1:]...))
		for _, line := range lines[1:] {
			wrapped = append(wrapped, []string{line})
		}
	}
	return wrapped
}

// part is the table of the first column and those of [from, end).
func part(rows [][]string, widths []int, from, end int, left bool) string {
	var b strings.Builder
	said := true // the row that the lines belong to is in this part
	for _, row := range rows {
		if len(row) > 1 || len(widths) == 1 {
			said = from == 1 || slices.ContainsFunc(row[min(from, len(row)):min(end, len(row))],
				func(cell string) bool { return cell != "" })
		}
		if !said {
			continue
		}
		line := ""
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-Width(cell))
			switch {
			case i == 0:
				line = cell + pad
			case i < from || i >= end:
			case left:
				line += strings.Repeat(" ", columnGap) + cell + pad
			default:
				line += strings.Repeat(" ", columnGap) + pad + cell
			}
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}
