package text_test

import (
	"testing"

	"onlinerna/internal/text"
)

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"node1 größer 日本 \"a\" \\": "node1 größer 日本 \"a\" \\", "\x1b[31mred\r\n": `\x1b[31mred\r\n`,
		"\xff\u202e": `\xff\u202e`,
		"\u009b31m":  `\u009b31m`,
	} {
		if got := text.Printable(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if got := text.PrintableLines("a\x07\nb"); got != "a\\a\nb" {
		t.Errorf("%q", got)
	}
}

func TestCell(t *testing.T) {
	for in, want := range map[string]string{
		"=HYPERLINK(1)": "'=HYPERLINK(1)", "+1 b": "'+1 b", "-a": "'-a", "@SUM": "'@SUM", "\t=1": "'\t=1",
		"": "", "-": "-", "-1.5e3": "-1.5e3", "+7": "+7", "n01440764": "n01440764", "a=b": "a=b",
	} {
		if got := text.Cell(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestTableOfNames(t *testing.T) {
	got := text.Table([][]string{{"name", "n"}, {"a\nb\x1b]0;x\a", "1"}, {"5\u00a0%", "2"}})
	if want := "name            n\na\\nb\\x1b]0;x\\a  1\n5\u00a0%             2\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
