package terminal

import (
	"io"
	"strings"
	"testing"
)

func TestGuard(t *testing.T) {
	for in, want := range map[string]string{
		"a\n\tö日\u00a0👩‍🔬\r":                "a\n\tö日\u00a0👩‍🔬\r",
		Style{true}.Error("x") + "\r\x1b[J": "\x1b[1;31mx\x1b[0m\r\x1b[J",
		"\x1b]0;title\x07":                  `\x1b]0;title\a`,
		"\x1b]52;c;cm0gLXJm\x1b\\":          `\x1b]52;c;cm0gLXJm\x1b\`,
		"\x1b[2A\x9b2J\u009b2J\u202egpj":    `\x1b[2A\x9b2J\u009b2J\u202egpj`,
		"\x00\x08\x7f":                      `\x00\b\x7f`,
	} {
		for _, each := range []int{1 << 10, 1} {
			if strings.Contains(in, "\x1b[1") && each == 1 {
				continue // the program writes its sequences whole
			}
			var b strings.Builder
			w := Guard(&b)
			for k := 0; k < len(in); k += each {
				if _, err := io.WriteString(w, in[k:min(len(in), k+each)]); err != nil {
					t.Fatal(err)
				}
			}
			if b.String() != want {
				t.Errorf("%q by %d: %q, want %q", in, each, b.String(), want)
			}
		}
	}
}
