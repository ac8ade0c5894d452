package report

import (
	"math"
	"strings"
	"testing"

	"onlinerna/train/network"
)

func TestVerdict(t *testing.T) {
	of := func(name string, wrong, loss float64) series {
		return series{name: name, scores: map[int]network.Score{7: *score(wrong, loss)}}
	}
	sgd := of("SGD", 20, 0.5)
	for _, c := range []struct {
		list []series
		want string
	}{
		{[]series{sgd}, ""},
		{[]series{sgd, of("RNA", 19.5, 0.4)}, "Best by error: RNA, 0.50 points below SGD (within the standard error).\nBest by loss: RNA, 0.1000 below SGD.\n"},
		{[]series{sgd, of("RNA", 18, 0.6), of("EMA", 17.9, 0.7)},
			"Best by error: EMA, 2.10 points below SGD (more than the standard error), 0.10 points below the next, RNA (within the standard error).\n" +
				"Best by loss: SGD, 0.1000 below the next, RNA.\n"},
		{[]series{sgd, of("RNA", 20, math.NaN())}, "Best by error: SGD, level with RNA.\n"},
	} {
		if got := verdict(c.list, 7); got != c.want {
			t.Errorf("verdict\n%swant\n%s", got, c.want)
		}
		if got := verdict(c.list, 8); got != "" {
			t.Errorf("an epoch without scores: %q", got)
		}
	}
	c, h := demo()
	if got := table(t, c, h); !strings.Contains(got, "Best by loss: RNA of the last 3 epochs, offline, 0.0500 below SGD, 0.0300 below\n  the next, average of the last 2.\n") {
		t.Errorf("table without the verdict:\n%s", got)
	}
}
