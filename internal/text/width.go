package text

import (
	"regexp"
	"unicode"

	"golang.org/x/text/width"
)

var escape = regexp.MustCompile("\x1b\\[[0-9;]*[a-zA-Z]")

// Width is the number of columns that s takes on a terminal: two for wide characters, as Chinese ones, none for accents
// that combine and for escape sequences.
func Width(s string) int {
	n := 0
	for _, r := range escape.ReplaceAllLiteralString(s, "") {
		n += runeWidth(r)
	}
	return n
}

func runeWidth(r rune) int {
	if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// Shorten replaces the middle of s by an ellipsis if s takes more columns than available.
func Shorten(columns int, s string) string {
	if Width(s) <= columns {
		return s
	}
	return Middle(s, func(short string) bool { return Width(short) <= columns })
}

// Middle replaces as much of the middle of s by an ellipsis as is needed to fit. It keeps most of the end, the most
// informative part of a file name. Text that cannot fit is the ellipsis alone.
func Middle(s string, fits func(short string) bool) string {
	r := []rune(s)
	if fits(s) {
		return s
	}
	for keep := len(r) - 1; keep > 0; keep-- {
		head := keep / 2
		if short := string(r[:head]) + "…" + string(r[len(r)-keep+head:]); fits(short) {
			return short
		}
	}
	return "…"
}
