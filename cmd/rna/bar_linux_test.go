package main

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"onlinerna/internal/terminal/pty"
	"onlinerna/internal/text"
)

// TestBar: the line of a bar fits any terminal, and shortens the description where it does not.
func TestBar(t *testing.T) {
	const what = "epoch 12/90, loss 6.901  4 h 12 min left"
	b := &bar{out: io.Discard}
	b.start(what, 1200, countSteps)
	defer b.finish()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done = 300
	for columns, starts := range map[int]string{119: what + "  25% |", 79: "epoch 12/90", 59: "epoch", 39: "…", 10: ""} {
		got := b.line(columns)
		if text.Width(got) > columns || !strings.HasPrefix(got, starts) || columns > 50 && !strings.Contains(got, "(300/1200)") {
			t.Errorf("%d columns: %q", columns, got)
		}
	}
	if got := b.line(119); !strings.HasPrefix(got, what) {
		t.Errorf("the description stays short: %q", got)
	}
}

// TestBarResized: a bar is drawn anew at the width of the terminal, from the beginning of its line, to where the cursor goes back.
func TestBarResized(t *testing.T) {
	t.Setenv("TERM", "xterm")
	p, err := pty.Open(100)
	if err != nil {
		t.Skip(err)
	}
	defer p.Close()
	b := newBar(p.Terminal, false)
	drawn := func() string {
		line := make([]byte, 1000)
		n, err := p.Screen.Read(line)
		if err != nil {
			t.Fatal(err)
		}
		return string(line[:n])
	}
	b.start(strings.Repeat("x", 30), 10, countSteps)
	b.mu.Lock() // so that nothing but what follows is drawn
	wide := drawn()
	p.Resize(40)
	b.draw()
	narrow := drawn()
	b.mu.Unlock()
	for columns, line := range map[int]string{100: wide, 40: narrow} {
		body, ok := strings.CutPrefix(line, "\r\x1b[J")
		body, back := strings.CutSuffix(body, "\r")
		if !ok || !back || text.Width(body) >= columns || strings.ContainsAny(body, "\r\n") {
			t.Errorf("%d columns: %q", columns, line)
		}
	}
	if b.finish(); drawn() != "\r\x1b[J" {
		t.Error("the bar stays")
	}
	b.set(3) // draws nothing any more
	var pipe bytes.Buffer
	quiet := newBar(&pipe, false)
	quiet.start("x", 3, countSteps)
	quiet.set(1)
	quiet.finish()
	if pipe.Len() > 0 {
		t.Errorf("a pipe has %q", &pipe)
	}
}

// TestTerminalWidth runs commands on terminals of several widths: nothing that can be broken is wider.
func TestTerminalWidth(t *testing.T) {
	t.Setenv("TERM", "dumb")
	for _, columns := range []int{60, 80, 120} {
		for _, args := range [][]string{{"--help"}, {"predict", "--help"}, {"models"}, {"logreg", "--iterations", "3", "-q"}} {
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
