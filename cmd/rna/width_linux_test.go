package main

import (
	"bytes"
	"strings"
	"testing"

	"onlinerna/internal/terminal/pty"
	"onlinerna/internal/text"
)

// TestTerminalWidth runs commands on terminals of several widths: no breakable text is wider.
func TestTerminalWidth(t *testing.T) {
	t.Setenv("TERM", "dumb")
	for _, columns := range []int{60, 80, 120} {
		for _, args := range [][]string{{"--help"}, {"predict", "--help"}, {"models"}, {"logreg", "--iterations", "3",
			"-q"}} {
			p, err := pty.Open(columns)
			if err != nil {
				t.Skip(err)
			}
			cmd := itself(args...)
			cmd.Stdout, cmd.Stderr = p.Terminal, p.Terminal
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			p.Terminal.Close()
			var out bytes.Buffer
			out.ReadFrom(p.Screen) // ends with an error when the command does
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
			p.Screen.Close()
			widest := 0
			for line := range strings.Lines(out.String()) {
				line = strings.TrimRight(line, "\r\n")
				widest = max(widest, text.Width(line))
				if text.Width(line) > columns && !strings.Contains(line, "rna predict ") { // examples stay as they are
					t.Errorf("%v in %d columns: %q", args, columns, line)
				}
			}
			if args[0] == "predict" && widest < columns-20 {
				t.Errorf("%v uses %d of %d columns", args, widest, columns)
			}
		}
	}
}
