package average

import (
	"math"
	"testing"

	"onlinerna/train/hook"
	"onlinerna/train/network"
)

func TestAccepts(t *testing.T) {
	score := func(loss float64) network.Score { return network.Score{Loss: loss, Images: 10} }
	for _, c := range []struct {
		name string
		held []hook.ScoreRecord
		want bool
	}{
		{"falls", []hook.ScoreRecord{{Kind: network.SGD, Score: score(2)}, {Kind: network.RNA, Score: score(1)}}, true},
		{"stays", []hook.ScoreRecord{{Kind: network.SGD, Score: score(1)}, {Kind: network.RNA, Score: score(1)}}, true},
		{"rises", []hook.ScoreRecord{{Kind: network.SGD, Score: score(1)}, {Kind: network.RNA, Score: score(2)}}, false},
		{"rises from that with statistics re-estimated", []hook.ScoreRecord{{Kind: network.SGD, Score: score(3)},
			{Kind: network.SGDStats, Score: score(1)}, {Kind: network.RNA, Score: score(2)}}, false},
		{"not a number", []hook.ScoreRecord{{Kind: network.SGD, Score: score(1)},
			{Kind: network.RNA, Score: score(math.NaN())}}, false},
	} {
		h := &RNA{cfg: Options{Accept: true}}
		rec := &hook.EpochRecord{Held: c.held, RNA: &hook.RNARecord{}}
		if got := h.accepts(rec); got != c.want || (rec.RNA.Outcome == "accepted") != got || rec.RNA.Outcome == "" {
			t.Errorf("%s: accepted: %v, outcome %q", c.name, got, rec.RNA.Outcome)
		}
	}
}
