package terminal

import (
	"bytes"
	"io"
	"os"
	"testing"

	"onlinerna/internal/terminal/pty"
)

type wrapped struct{ io.Writer }

func (w wrapped) Unwrap() io.Writer { return w.Writer }

// TestColumns: the width is the terminal's, also below other writers; a pipe has none.
func TestColumns(t *testing.T) {
	p, err := pty.Open(61)
	if err != nil {
		t.Skip(err)
	}
	defer p.Close()
	for columns, w := range map[int]io.Writer{61: p.Terminal, 0: &bytes.Buffer{}} {
		if got := Columns(w); got != columns || Columns(wrapped{w}) != columns {
			t.Errorf("%d columns, want %d", got, columns)
		}
	}
	if HelpColumns(p.Terminal) != 61 || HelpColumns(&bytes.Buffer{}) != Default {
		t.Error("help has another width")
	}
	p.Resize(0)
	if Columns(p.Terminal) != Default {
		t.Errorf("%d columns of a terminal that does not say its own", Columns(p.Terminal))
	}
}

// TestStyle goes through the variables that turn styles on and off.
func TestStyle(t *testing.T) {
	p, err := pty.Open(80)
	if err != nil {
		t.Skip(err)
	}
	defer p.Close()
	for _, c := range []struct {
		term, no, cli, force string
		terminal, pipe       bool
	}{
		{"xterm", "", "", "", true, false},
		{"dumb", "", "", "", false, false},
		{"xterm", "1", "", "", false, false},
		{"xterm", "1", "", "1", false, false},
		{"xterm", "", "0", "", false, false},
		{"xterm", "", "1", "", true, false},
		{"xterm", "", "0", "1", true, true},
		{"dumb", "", "", "1", true, true},
		{"xterm", "", "", "0", true, false},
	} {
		for name, value := range map[string]string{"TERM": c.term, "NO_COLOR": c.no, "CLICOLOR": c.cli,
			"CLICOLOR_FORCE": c.force} {
			t.Setenv(name, value)
			if value == "" {
				os.Unsetenv(name)
			}
		}
		for _, x := range []struct {
			w    io.Writer
			want bool
		}{{p.Terminal, c.terminal}, {&bytes.Buffer{}, c.pipe}} {
			if got := StyleOf(x.w).Bold("x") == "\x1b[1mx\x1b[0m"; got != x.want {
				t.Errorf("%+v: bold is %v on %T", c, got, x.w)
			}
		}
	}
}

// TestPage fits a table and a line to a terminal, and leaves them in a pipe.
func TestPage(t *testing.T) {
	t.Setenv("TERM", "dumb")
	write := func(w io.Writer) {
		b := NewPage(w)
		b.Table([][]string{{"name", "first", "second"}, {"x", "1", "2"}})
		b.WriteString("  a line of several words\nnext\n")
		if err := b.Flush(w); err != nil {
			t.Error(err)
		}
	}
	var pipe bytes.Buffer
	write(&pipe)
	if want := "name  first  second\nx         1       2\n  a line of several words\nnext\n"; pipe.String() != want {
		t.Errorf("a pipe has %q, want %q", &pipe, want)
	}
	p, err := pty.Open(16)
	if err != nil {
		t.Skip(err)
	}
	defer p.Close()
	write(p.Terminal)
	got := make([]byte, 1000)
	n, _ := p.Screen.Read(got)
	want := "name  first\r\nx         1\r\n\r\nname  second\r\nx          2\r\n  a line of\r\n    several\r\n    " +
		"words\r\nnext\r\n"
	if string(got[:n]) != want {
		t.Errorf("a terminal has %q, want %q", got[:n], want)
	}
}
