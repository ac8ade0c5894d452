package terminal

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
	b := &Bar{out: io.Discard}
	b.Start(what, 1200, CountSteps)
	defer b.Finish()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done = 300
	for columns, starts := range map[int]string{119: what + "  25% |", 79: "epoch 12/90", 59: "epoch", 39: "…", 10: ""} {
		got := b.line(columns)
		if text.Width(got) > columns || !strings.HasPrefix(got, starts) || columns > 50 && !strings.Contains(got,
			"(300/1200)") {
			t.Errorf("%d columns: %q", columns, got)
		}
	}
	if got := b.line(119); !strings.HasPrefix(got, what) {
		t.Errorf("the description stays short: %q", got)
	}
}

// TestBarResized: a bar is redrawn at the width of the terminal, from the beginning of its line, to which the cursor
// returns.
func TestBarResized(t *testing.T) {
	t.Setenv("TERM", "xterm")
	p, err := pty.Open(100)
	if err != nil {
		t.Skip(err)
	}
	defer p.Close()
	b := NewBar(p.Terminal, false)
	drawn := func() string {
		line := make([]byte, 1000)
		n, err := p.Screen.Read(line)
		if err != nil {
			t.Fatal(err)
		}
		return string(line[:n])
	}
	b.Start(strings.Repeat("x", 30), 10, CountSteps)
	b.mu.Lock() // so that only the following calls draw
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
	if b.Finish(); drawn() != "\r\x1b[J" {
		t.Error("the bar stays")
	}
	b.Set(3) // draws nothing any more
	var pipe bytes.Buffer
	quiet := NewBar(&pipe, false)
	quiet.Start("x", 3, CountSteps)
	quiet.Set(1)
	quiet.Finish()
	if pipe.Len() > 0 {
		t.Errorf("a pipe has %q", &pipe)
	}
}
