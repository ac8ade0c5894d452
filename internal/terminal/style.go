package terminal

import (
	"io"
	"os"
)

// Style writes text bold and coloured where the terminal shows that. The zero value leaves text as it is.
type Style struct{ on bool }

// StyleOf is the style for w: plain with NO_COLOR; else with escape sequences if CLICOLOR_FORCE is set and not 0; else
// with them on a terminal, unless CLICOLOR is 0 or TERM is dumb.
func StyleOf(w io.Writer) Style {
	force := os.Getenv("CLICOLOR_FORCE")
	switch {
	case os.Getenv("NO_COLOR") != "":
		return Style{}
	case force != "" && force != "0":
		return Style{true}
	case os.Getenv("CLICOLOR") == "0":
		return Style{}
	}
	return Style{Escapes(w)}
}

// Escapes reports whether w is a terminal that understands escape sequences.
func Escapes(w io.Writer) bool {
	return Is(w) && os.Getenv("TERM") != "dumb" && enable(file(w))
}

func (s Style) with(code, text string) string {
	if !s.on || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Bold is text in bold.
func (s Style) Bold(text string) string { return s.with("1", text) }

// Error is text in bold red.
func (s Style) Error(text string) string { return s.with("1;31", text) }

// Warning is text in yellow.
func (s Style) Warning(text string) string { return s.with("33", text) }
