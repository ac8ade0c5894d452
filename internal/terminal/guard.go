package terminal

import (
	"io"
	"regexp"
	"unicode"
	"unicode/utf8"

	"onlinerna/internal/text"
)

// Guard is a writer to w that passes only the escape sequences for bold, colour and clearing. Other control characters,
// for instance from names in files, are written as in Go.
func Guard(w io.Writer) io.Writer { return &guard{w: w} }

type guard struct {
	w    io.Writer
	rest []byte // an incomplete rune
}

// own are the sequences of this program.
var own = regexp.MustCompile(`^\x1b\[([0-9;]{0,8}m|J)`)

// Unwrap returns the writer below.
func (g *guard) Unwrap() io.Writer { return g.w }

func (g *guard) Write(p []byte) (int, error) {
	b := append(g.rest, p...)
	var out []byte
	g.rest = nil
	for len(b) > 0 {
		if !utf8.FullRune(b) {
			g.rest = b
			break
		}
		r, n := utf8.DecodeRune(b)
		if r == '\x1b' {
			n = max(n, len(own.Find(b)))
		}
		switch {
		case r == '\n' || r == '\r' || r == '\t' || n > 1 && r == '\x1b',
			!unicode.IsControl(r) && !unicode.Is(unicode.Bidi_Control, r) && (r != utf8.RuneError || n > 1):
			out = append(out, b[:n]...)
		default:
			out = append(out, text.Printable(string(b[:n]))...)
		}
		b = b[n:]
	}
	if _, err := g.w.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}
