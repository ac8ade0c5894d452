// Package terminal fits output to the terminal that it goes to, and leaves it as it is where that is a file or a pipe.
package terminal

import (
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"onlinerna/internal/text"
)

// Default is the width of help texts where there is no terminal, and that of a terminal that does not say its own.
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

// HelpColumns is the width of help texts on w: that of the terminal, and Default elsewhere.
func HelpColumns(w io.Writer) int {
	if n := Columns(w); n > 0 {
		return n
	}
	return Default
}

// Wrap breaks lines at spaces to fit the terminal w; what goes on in another line begins there with indent.
func Wrap(w io.Writer, lines, indent string) string {
	list := strings.Split(lines, "\n")
	for i, line := range list {
		list[i] = text.WrapTo(Columns(w), line, indent)
	}
	return strings.Join(list, "\n")
}
