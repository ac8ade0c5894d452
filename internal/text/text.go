// Package text fits text into a terminal.
package text

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Columns are those of a terminal.
const Columns = 80

// Wrap breaks text at spaces into lines of a terminal; lines after the first begin with indent. A no-break space holds words together.
func Wrap(text, indent string) string { return WrapTo(Columns, text, indent) }

// WrapTo is [Wrap] for lines of so many columns.
func WrapTo(columns int, text, indent string) string {
	if len([]rune(text)) <= columns {
		return strings.ReplaceAll(text, "\u00a0", " ")
	}
	var b strings.Builder
	at := 0
	for i, word := range strings.Fields(strings.ReplaceAll(text, "\u00a0", "\x00")) {
		word = strings.ReplaceAll(word, "\x00", " ")
		n := len([]rune(word))
		switch {
		case i == 0:
		case at+1+n > columns:
			b.WriteString("\n" + indent)
			at = len([]rune(indent))
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += n
	}
	return b.String()
}

// Paragraphs wraps text that is in paragraphs: lines that are indented stay as they are.
func Paragraphs(text string) string {
	var out, part []string
	flush := func() {
		if len(part) > 0 {
			out = append(out, Wrap(strings.Join(part, " "), ""))
			part = nil
		}
	}
	for _, line := range strings.Split(text, "\n") {
		switch {
		case strings.TrimSpace(line) == "", strings.HasPrefix(line, " "), strings.HasPrefix(line, "\t"):
			flush()
			out = append(out, line)
		default:
			part = append(part, line)
		}
	}
	flush()
	return strings.Join(out, "\n")
}

// Bytes writes a number of bytes with three digits.
func Bytes(n int64) string {
	if n < 1e9 {
		return fmt.Sprintf("%.3g MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.3g GB", float64(n)/1e9)
}

// Count writes 1 epoch, 2 epochs.
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Thousands writes 25557032 as 25,557,032.
func Thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Table aligns the first column of rows to the left, the others to the right.
func Table(rows [][]string) string {
	var b strings.Builder
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
	return b.String()
}

// Number writes three digits or more, without an exponent.
func Number(x float64) string {
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

// Percent writes a share, and nothing for none.
func Percent(x float64) string {
	if x == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f %%", 100*x)
}

// Some lists the first five of names.
func Some(names []string) string {
	const most = 5
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}
