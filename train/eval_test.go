package train

import (
	"errors"
	"math"
	"math/bits"
	"testing"

	"onlinerna/data"
	"onlinerna/train/average"
)

// TestEvaluateLogits recomputes the score from the logits, with a smaller last batch.
func TestEvaluateLogits(t *testing.T) {
	c := tinyColour("", pictures(t, 22, 22, 16))
	c.Epochs, c.RNA.Mode = 1, average.Off
	r := trained(t, c, cpuDevice(t, 2))
	loss, right, images := 0.0, 0, 0
	score, err := r.Net.Score(t.Context(), r.in.val, func(b *data.Batch, logits []float32) error {
		if len(logits) != 2*b.N {
			t.Fatalf("%d logits for %d images of 2 classes", len(logits), b.N)
		}
		for i, label := range b.Labels {
			right0, other := float64(logits[2*i+int(label)]), float64(logits[2*i+1-int(label)])
			loss += math.Log1p(math.Exp(other - right0))
			if right0 > other {
				right++
			}
			images++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if images != 22 || score.Images != 22 {
		t.Errorf("%d images, scored %d", images, score.Images)
	}
	near(t, "loss", []float64{score.Loss}, []float64{loss / 22}, 1e-5)
	near(t, "top-1", []float64{score.Top1}, []float64{100 * float64(right) / 22}, 1e-12)
	again, err := r.Evaluate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	marked := 0
	for _, b := range []byte(again.Right) {
		marked += bits.OnesCount8(b)
	}
	if marked != right || len(again.Right) != 3 {
		t.Errorf("outcomes of %d bytes say that %d images are right, not %d", len(again.Right), marked, right)
	}
	if score.Right = again.Right; *again != score {
		t.Errorf("the run's own score is %+v, want %+v", again, score)
	}
	stop := errors.New("stop")
	if _, err := r.Net.Score(t.Context(), r.in.val, func(*data.Batch, []float32) error { return stop }); !errors.Is(err,
		stop) {
		t.Errorf("error %v, want the callback's", err)
	}
}
