package text

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable returns foreign text as one line that is safe to print: unprintable characters and invalid UTF-8 are
// escaped as in Go.
func Printable(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 || !unicode.IsGraphic(r) {
			q := strconv.Quote(s[i : i+n])
			b.WriteString(q[1 : len(q)-1])
		} else {
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

// PrintableLines is [Printable] of each line.
func PrintableLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = Printable(line)
	}
	return strings.Join(lines, "\n")
}

// Cell is text from elsewhere as a cell of CSV: a spreadsheet takes text that begins with =, +, - or @ for a formula,
// unless an apostrophe comes first. Numbers and a lone dash are left alone.
func Cell(s string) string {
	if s == "" || s == "-" || !strings.ContainsRune("=+-@\t\r", rune(s[0])) {
		return s
	}
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		return s
	}
	return "'" + s
}
