// Package text fits text into a terminal.
package text

import (
	"fmt"
	"math"
	"strings"
	"unicode"
)

// WrapTo breaks text at spaces into lines of at most the given width, 0 for one line; lines after the first begin
// with indent. A no-break space holds words together.
func WrapTo(columns int, text, indent string) string {
	if columns <= 0 || Width(text) <= columns {
		return strings.ReplaceAll(text, "\u00a0", " ")
	}
	var b strings.Builder
	at := 0
	for rest := text; rest != ""; {
		word := strings.TrimLeftFunc(rest, breaks)
		gap := rest[:len(rest)-len(word)]
		rest = ""
		if end := strings.IndexFunc(word, breaks); end >= 0 {
			word, rest = word[:end], word[end:]
		}
		if word == "" {
			break
		}
		word = strings.ReplaceAll(word, "\u00a0", " ")
		n := Width(word)
		switch {
		case at == 0:
		case at+len(gap)+n > columns:
			b.WriteString("\n" + indent)
			at = Width(indent)
		default:
			b.WriteString(strings.Repeat(" ", len(gap)))
			at += len(gap)
		}
		b.WriteString(word)
		at += n
	}
	return b.String()
}

// breaks reports whether a line can be broken in place of r.
func breaks(r rune) bool { return unicode.IsSpace(r) && r != '\u00a0' }

// Paragraphs wraps text in paragraphs to a width: indented lines stay unchanged.
func Paragraphs(columns int, text string) string {
	var out, part []string
	flush := func() {
		if len(part) > 0 {
			out = append(out, WrapTo(columns, strings.Join(part, " "), ""))
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

// Digits writes a number with three digits, or all of a whole part that has more.
func Digits(x float64) string {
	if x < 999.5 {
		return fmt.Sprintf("%.3g", x)
	}
	return Thousands(int(math.Round(x)))
}

// Thousands writes 25557032 as 25,557,032.
func Thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
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
