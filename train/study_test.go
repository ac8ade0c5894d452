package train

import (
	"context"
	"math"
	"os"
	"testing"
)

// TestStudy measures what RNA does for LeNet on the glyphs, and compares it with what was measured with
// PyTorch: means over epochs 11 to 15 and three seeds. It takes five to nine minutes on two cores, and runs when
// ONLINERNA_STUDY is 1.
func TestStudy(t *testing.T) {
	if os.Getenv("ONLINERNA_STUDY") != "1" {
		t.Skip("set ONLINERNA_STUDY=1 to run it")
	}
	constant := study(t, Schedule{Kind: Constant, Rate: 0.05})
	if constant.rna > -0.8 || constant.loss > -0.05 {
		t.Errorf("constant rate: RNA is %+.2f points and %+.3f loss from SGD, want -0.8 and -0.05 at least", constant.rna, constant.loss)
	}
	if d := constant.rna - constant.average5; math.Abs(d) > 0.3 {
		t.Errorf("constant rate: RNA is %+.2f points from the average, want 0.3 at most", d)
	}
	linear := study(t, Schedule{Kind: Linear, Rate: 0.05, Final: 0.0005})
	if math.Abs(linear.rna) > 0.4 {
		t.Errorf("falling rate: RNA is %+.2f points from SGD, want 0.4 at most", linear.rna)
	}
	if linear.average10 < 1 {
		t.Errorf("falling rate: the average of 10 is %+.2f points from SGD, want 1 at least", linear.average10)
	}
}

// difference to the iterate of SGD: of errors in points, of losses in nats.
type difference struct{ rna, loss, average5, average10 float64 }

func study(t *testing.T, s Schedule) difference {
	var mean difference
	const seeds, from, to = 3, 11, 15
	dev := cpuDevice(t, 0)
	for seed := uint64(1); seed <= seeds; seed++ {
		r := newRun(t, Config{Model: "lenet", Batch: 128, Epochs: to, Schedule: s, WeightDecay: ptr(5e-4), Seed: seed,
			RNA: RNAConfig{Window: 5, Averages: []int{5, 10}}}, dev)
		if err := r.Train(context.Background()); err != nil {
			t.Fatal(err)
		}
		var d difference
		var sgd, tens float64
		for _, rec := range r.History[from-1:] {
			sgd += rec.SGD.Error() / (to - from + 1)
			d.rna += (rec.RNA.Score.Error() - rec.SGD.Error()) / (to - from + 1)
			d.loss += (rec.RNA.Score.Loss - rec.SGD.Loss) / (to - from + 1)
			for _, a := range rec.Averages {
				switch a.Epochs {
				case 5:
					d.average5 += (a.Score.Error() - rec.SGD.Error()) / (to - from + 1)
				case 10: // from epoch 12 on
					d.average10 += a.Score.Error() - rec.SGD.Error()
					tens++
				}
			}
		}
		d.average10 /= tens
		t.Logf("%s, seed %d: SGD %.2f %%, RNA %+.2f (loss %+.3f), average of 5 %+.2f, of 10 %+.2f", s.Kind, seed, sgd, d.rna, d.loss, d.average5, d.average10)
		mean.rna += d.rna / seeds
		mean.loss += d.loss / seeds
		mean.average5 += d.average5 / seeds
		mean.average10 += d.average10 / seeds
	}
	t.Logf("%s, mean: RNA %+.2f (loss %+.3f), average of 5 %+.2f, of 10 %+.2f", s.Kind, mean.rna, mean.loss, mean.average5, mean.average10)
	return mean
}
