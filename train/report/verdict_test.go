package report

import (
	"math"
	"strings"
	"testing"

	"onlinerna/train"
	"onlinerna/train/average"
	"onlinerna/train/hook"
	"onlinerna/train/network"
)

// TestVerdict checks that the verdict names the run's best weights, in their epoch.
func TestVerdict(t *testing.T) {
	rna := hook.ScoreRecord{Kind: network.RNA, Score: *score(19.5, 0.4)}
	at := func(epoch int, sgd, rna, ema *network.Score) hook.EpochRecord {
		r := hook.EpochRecord{Epoch: epoch, SGD: sgd, EMA: ema}
		if rna != nil {
			r.RNA = &hook.RNARecord{Score: rna}
		}
		return r
	}
	c := train.Spec{BestBy: hook.ByError, EMA: []float64{12}, RNA: average.Options{Mode: average.Offline, Window: 3}}
	for _, k := range []struct {
		by, out string
		history []hook.EpochRecord
		best    *hook.BestRecord
		want    string
	}{
		{hook.ByError, "", []hook.EpochRecord{at(7, score(20, 0.5), nil, nil)}, nil, ""},
		{hook.ByError, "runs/x", []hook.EpochRecord{at(7, score(20, 0.5), nil, nil)},
			&hook.BestRecord{ScoreRecord: hook.ScoreRecord{Kind: network.SGD, Score: *score(20, .5)}, Epoch: 7},
			"Best by validation error: SGD, epoch 7, 20.00 %; kept as best.safetensors.\n"},
		{hook.ByError, "", []hook.EpochRecord{at(6, score(20, 0.5), score(19.5, .4), nil), at(7, score(30, 0.1), nil, nil)},
			&hook.BestRecord{ScoreRecord: rna, Epoch: 6},
			"Best by validation error: RNA of the last 3 epochs, offline, epoch 6, 19.50 %, 0.50 ± 1.13 points below SGD of " +
				"that epoch (as of two sets of images).\n"},
		{hook.ByLoss, "", []hook.EpochRecord{at(6, score(20, 0.5), score(19.5, .4), score(18, .45)), at(7, score(10, 0.41),
			nil, nil)}, &hook.BestRecord{ScoreRecord: rna, Epoch: 6},
			"Best by validation loss: RNA of the last 3 epochs, offline, epoch 6, 0.4000, 0.1000 below SGD of that epoch, " +
				"0.0500 below the next, power EMA, γ = 12.\n"},
		{hook.ByError, "", []hook.EpochRecord{at(6, score(22, 0.5), score(19.5, .4), score(19.5, .45))},
			&hook.BestRecord{ScoreRecord: rna, Epoch: 6},
			"Best by validation error: RNA of the last 3 epochs, offline, epoch 6, 19.50 %, 2.50 ± 1.15 points below SGD (as " +
				"of two sets of images), " +
				"level with the next, power EMA, γ = 12.\n"},
		{hook.ByError, "", []hook.EpochRecord{at(6, score(20, 0.5), score(19.5, math.NaN()), nil)},
			&hook.BestRecord{ScoreRecord: hook.ScoreRecord{Kind: network.SGD, Score: *score(20, .5)}, Epoch: 6},
			"Best by validation error: SGD, epoch 6, 20.00 %.\n"},
	} {
		c.BestBy, c.Out = k.by, k.out
		k.history[len(k.history)-1].Best = k.best
		if got := verdict(c, k.history); got != k.want {
			t.Errorf("verdict\n%swant\n%s", got, k.want)
		}
	}
	// Held-out images choose, and the validation images show how good the choice is.
	r := at(6, score(20, .5), score(21, .6), nil)
	r.Held = []hook.ScoreRecord{{Kind: network.SGD, Score: *score(20, .5)}, rna}
	r.Best = &hook.BestRecord{ScoreRecord: rna, Epoch: 6}
	want := "Best by held-out error: RNA of the last 3 epochs, offline, epoch 6, 19.50 %, 0.50 ± 1.13 points below SGD " +
		"(as of two sets of images); " +
		"on validation images error 21.00 %, loss 0.6000, +1.00 ± 1.14 points to SGD (as of two sets of images).\n"
	c.BestBy, c.Out = hook.ByError, ""
	if got := verdict(c, []hook.EpochRecord{r}); got != want {
		t.Errorf("verdict\n%swant\n%s", got, want)
	}
	// The iterate is not compared with itself.
	r.Held = []hook.ScoreRecord{{Kind: network.SGD, Score: *score(20, .5)}}
	r.Best = &hook.BestRecord{ScoreRecord: r.Held[0], Epoch: 6}
	want = "Best by held-out error: SGD, epoch 6, 20.00 %; on validation images error 20.00 %, loss 0.5000.\n"
	if got := verdict(c, []hook.EpochRecord{r}); got != want {
		t.Errorf("verdict\n%swant\n%s", got, want)
	}
	// Without a validation score of the iterate, nothing is compared with it.
	r.SGD, r.Held = nil, append(r.Held, rna)
	r.Best = &hook.BestRecord{ScoreRecord: rna, Epoch: 6}
	want = "Best by held-out error: RNA of the last 3 epochs, offline, epoch 6, 19.50 %, 0.50 ± 1.13 points below SGD " +
		"(as of two sets of images); on validation images error 21.00 %, loss 0.6000.\n"
	if got := verdict(c, []hook.EpochRecord{r}); got != want {
		t.Errorf("verdict\n%swant\n%s", got, want)
	}
}

func TestSigned(t *testing.T) {
	for x, want := range map[float64]string{-0.001: "0.00", 0.004: "0.00", 0: "0.00", -0.5: "-0.50", 2: "+2.00"} {
		if got := signed(x); got != want {
			t.Errorf("%g is %q, want %q", x, got, want)
		}
	}
}

func TestCoefficientTable(t *testing.T) {
	_, h := demo()
	d, noise := 0.5, 0.25
	h[9].RNA.Distance, h[9].RNA.NoiseDistance, h[9].RNA.Noise = &d, &noise, 0.9
	var b strings.Builder
	if err := CoefficientTable(&b, h[8:]); err != nil {
		t.Fatal(err)
	}
	want := `RNA coefficients:
                   weight of        distance from      that of   noise in
  epoch  snapshots  the newest  norm  plain average  noise alone  residuals
      9          3        0.75  0.94              -            -          -
     10          3        0.75  0.94          0.500        0.250       90 %
Of 4 iterates that scatter about a point, c is a parabola at the distance 0.082.
`
	if got := b.String(); strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(want), " ") {
		t.Errorf("table\n%s\nwant\n%s", got, want)
	}
	for _, line := range strings.Split(b.String(), "\n") {
		if len(line) > 80 {
			t.Errorf("%d columns: %q", len(line), line)
		}
	}
	// Epochs without coefficients have no line; one coefficient is no parabola.
	b.Reset()
	h[2].RNA = &hook.RNARecord{Status: "rank deficient"}
	h[3].RNA = &hook.RNARecord{Status: "ok", C: []float64{1}, NormC: 1}
	if err := CoefficientTable(&b, h[:4]); err != nil || strings.Contains(b.String(), "scatter") ||
		strings.Join(strings.Fields(strings.Split(b.String(), "\n")[3]), " ") != "4 1 1.00 1.00 - - -" {
		t.Errorf("%v\n%s", err, b.String())
	}
	b.Reset()
	if err := CoefficientTable(&b, h[:2]); err != nil || b.Len() > 0 {
		t.Errorf("without coefficients: %q, %v", b.String(), err)
	}
}
