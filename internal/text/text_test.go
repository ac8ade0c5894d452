package text

import (
	"slices"
	"testing"
)

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
		{0, "of any length", "", "of any length"},
		{9, "a  b  cd e fg", "  ", "a  b  cd\n  e fg"},
	} {
		if got := WrapTo(c.columns, c.text, c.indent); got != c.to {
			t.Errorf("%q in %d columns is %q, want %q", c.text, c.columns, got, c.to)
		}
	}
	if got, want := Paragraphs(9, "a\nb\n\n  c\nd"), "a b\n\n  c\nd"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestNumbers(t *testing.T) {
	for _, c := range [][2]string{
		{Count(0, "step"), "0 steps"}, {Count(1, "step"), "1 step"}, {Count(2, "step"), "2 steps"},
		{Digits(9.876), "9.88"}, {Digits(999.4), "999"}, {Digits(999.6), "1,000"},
		{Thousands(0), "0"}, {Thousands(999), "999"}, {Thousands(1000), "1,000"}, {Thousands(25557032), "25,557,032"},
	} {
		if c[0] != c[1] {
			t.Errorf("%q, want %q", c[0], c[1])
		}
	}
}

func TestWidth(t *testing.T) {
	for s, want := range map[string]int{"": 0, "abc": 3, "猫 cat": 6, "e\u0301": 1,
		"\x1b[1;31mrna:\x1b[0m x": 6, "Füchse": 6} {
		if got := Width(s); got != want {
			t.Errorf("%q takes %d columns, want %d", s, got, want)
		}
	}
	for _, c := range []struct {
		columns  int
		from, to string
	}{
		{6, "abcdef", "abcdef"}, {5, "abcdef", "ab…ef"}, {4, "abcdef", "a…ef"}, {1, "abc", "…"}, {5, "猫猫猫猫", "猫…猫"},
	} {
		if got := Shorten(c.columns, c.from); got != c.to {
			t.Errorf("%q in %d columns is %q, want %q", c.from, c.columns, got, c.to)
		}
	}
}

func TestTables(t *testing.T) {
	rows := [][]string{{"", "one", "two", "three"}, {"猫", "1", "22", "3"}, {"short", "4"}}
	for columns, want := range map[int][]string{
		0:  {"       one  two  three\n猫       1   22      3\nshort    4\n"},
		22: {"       one  two  three\n猫       1   22      3\nshort    4\n"},
		21: {"       one  two\n猫       1   22\nshort    4\n", "       three\n猫         3\n"},
		3:  {"       one\n猫       1\nshort    4\n", "       two\n猫      22\n", "       three\n猫         3\n"},
	} {
		if got := Tables(columns, rows); !slices.Equal(got, want) {
			t.Errorf("%d columns: %q, want %q", columns, got, want)
		}
	}
	rows = [][]string{{"kind", "calls", "seconds"}, {"a kind with a long name", "1", "2"}, {"of long names", "3"}}
	if got, want := Tables(26, rows),
		[]string{"kind           calls\na kind with a      1\n  long name\nof long names      3\n",
			"kind           seconds\na kind with a        2\n  long name\n"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	rows = [][]string{{"", "one", "two", "three"}, {"猫", "1", "22", "3"}}
	if got, want := LeftTables(0, rows), "    one  two  three\n猫  1    22   3\n"; got[0] != want {
		t.Errorf("%q, want %q", got[0], want)
	}
	if got := Table([][]string{{"a"}, {"b"}}); got != "a\nb\n" {
		t.Errorf("%q", got)
	}
}
