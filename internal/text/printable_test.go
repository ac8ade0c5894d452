package text_test

import (
	"testing"

	"onlinerna/internal/text"
)

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"node1 größer 日本 \"a\" \\": "node1 größer 日本 \"a\" \\", "\x1b[31mred\r\n": `\x1b[31mred\r\n`, "\xff\u202e": `\xff\u202e`,
		"\u009b31m": `\u009b31m`,
	} {
		if got := text.Printable(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if got := text.PrintableLines("a\x07\nb"); got != "a\\a\nb" {
		t.Errorf("%q", got)
	}
}
