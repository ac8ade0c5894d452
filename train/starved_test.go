package train

import (
	"strings"
	"testing"

	"onlinerna/train/hook"
)

// A line says that the loader is the slower part, with its rate, once ten seconds of an epoch show it.
func TestStarving(t *testing.T) {
	for _, test := range []struct {
		seconds hook.Seconds
		encoded bool
		want    []string // parts of the line; none for no line
	}{
		{hook.Seconds{Data: 30, Compute: 20, Eval: 100}, true,
			[]string{"in 60 % of the time", "feeds 200 images/s", "takes about 500", "rna data pack"}},
		{hook.Seconds{Data: 30, Compute: 20}, false, []string{"feeds 200 images/s", "--workers"}},
		{hook.Seconds{Data: 9, Compute: 41}, true, nil}, // a fifth is the least
		{hook.Seconds{Data: 9, Compute: .5}, true, nil}, // a short epoch may wait for its first batch alone
	} {
		line := starving(10_000, test.seconds, test.encoded)
		if (line != "") != (test.want != nil) {
			t.Errorf("%+v: %q", test.seconds, line)
		}
		for _, part := range test.want {
			if !strings.Contains(line, part) {
				t.Errorf("%+v: %q lacks %q", test.seconds, line, part)
			}
		}
	}
}
