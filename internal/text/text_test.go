package text

import "testing"

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		columns          int
		text, indent, to string
	}{
		{9, "as it is", "", "as it is"},
		{9, "one two three", "  ", "one two\n  three"},
		{9, "one two\u00a0three four", "  ", "one\n  two three\n  four"},
		{4, "longer than a line", "", "longer\nthan\na\nline"},
		{5, "‖c‖ äöü", " ", "‖c‖\n äöü"},
	} {
		if got := WrapTo(c.columns, c.text, c.indent); got != c.to {
			t.Errorf("%q in %d columns is %q, want %q", c.text, c.columns, got, c.to)
		}
	}
	if got, want := Paragraphs("a\nb\n\n  c\nd"), "a b\n\n  c\nd"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestNumbers(t *testing.T) {
	for _, c := range [][2]string{
		{Count(0, "step"), "0 steps"}, {Count(1, "step"), "1 step"}, {Count(2, "step"), "2 steps"},
		{Thousands(0), "0"}, {Thousands(999), "999"}, {Thousands(1000), "1,000"}, {Thousands(25557032), "25,557,032"},
	} {
		if c[0] != c[1] {
			t.Errorf("%q, want %q", c[0], c[1])
		}
	}
}
