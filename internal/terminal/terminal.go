// Package terminal fits output to its terminal. Output to a file or a pipe is unchanged.
package terminal

import (
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"onlinerna/internal/text"
)

// Default is the width of help texts without a terminal, and of a terminal of unknown width.
const Default = 80

// file is the file that w writes to in the end, nil if there is none.
func file(w io.Writer) *os.File {
	for {
		switch x := w.(type) {
		case *os.File:
			return x
		case interface{ Unwrap() io.Writer }:
			w = x.Unwrap()
		default:
			return nil
		}
	}
}

// Raw is the terminal below w, for a program that draws the whole screen and makes its own text printable; w if there is
// none.
func Raw(w io.Writer) io.Writer {
	if f := file(w); f != nil {
		return f
	}
	return w
}

// Is reports whether w is a terminal, also below writers with a method Unwrap() io.Writer.
func Is(w io.Writer) bool {
	f := file(w)
	return f != nil && term.IsTerminal(int(f.Fd()))
}

// Columns is the width of the terminal w, and 0, which is no limit, if w is none.
func Columns(w io.Writer) int {
	if !Is(w) {
		return 0
	}
	if n, _, err := term.GetSize(int(file(w).Fd())); err == nil && n > 0 {
		return n
	}
	return Default
}

// Size is the width and the height of the terminal w; 80 and 24 if they are unknown.
func Size(w io.Writer) (columns, lines int) {
	if f := file(w); f != nil {
		if columns, lines, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 && lines > 0 {
			return columns, lines
		}
	}
	return Default, 24
}

// HelpColumns is the width of help texts on w: that of the terminal, and Default elsewhere.
func HelpColumns(w io.Writer) int {
	if n := Columns(w); n > 0 {
		return n
	}
	return Default
}

// Wrap breaks lines at spaces to fit the terminal w; continuation lines begin with indent.
func Wrap(w io.Writer, lines, indent string) string {
	list := strings.Split(lines, "\n")
	for i, line := range list {
		list[i] = text.WrapTo(Columns(w), line, indent)
	}
	return strings.Join(list, "\n")
}
