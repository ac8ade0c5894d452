package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"onlinerna/nn/op"
)

// TestStatsDoNotCancel compares the statistics of channels far from 0 with sums over differences from the mean.
func TestStatsDoNotCancel(t *testing.T) {
	for _, channels := range []int{3, 64, 300} {
		for name, number := range map[string]func(r *rand.Rand, pixel int) float32{
			"mean 1000":     func(r *rand.Rand, _ int) float32 { return 1000 + float32(r.NormFloat64()) },
			"mean −30000":   func(r *rand.Rand, _ int) float32 { return -30000 + float32(r.NormFloat64()) },
			"no variance":   func(*rand.Rand, int) float32 { return .1 },
			"small numbers": func(r *rand.Rand, _ int) float32 { return float32(1e-18 * r.NormFloat64()) },
			"first pixel far away": func(r *rand.Rand, pixel int) float32 {
				if pixel == 0 {
					return -1000
				}
				return 1000 + float32(r.NormFloat64())
			},
		} {
			t.Run(fmt.Sprintf("%d channels/%s", channels, name), func(t *testing.T) {
				const n, h = 3, 41
				b := &builder{tb: t}
				x := b.data(n, channels, h, h)
				stats := b.apply(op.BatchNormStats{}, x)
				k := bind(t, open(t, 2), &b.Program, nil, b.alone())
				r := rand.New(rand.NewPCG(1, 2))
				data := k.floats(t, x) // pixel by pixel: NHWC
				for i := range data {
					data[i] = number(r, i/channels)
				}
				k.run(t)
				got := k.floats(t, stats)
				for c := range channels {
					sum, squares := 0., 0.
					for i := c; i < len(data); i += channels {
						sum += float64(data[i])
					}
					mean := sum / (n * h * h)
					for i := c; i < len(data); i += channels {
						squares += (float64(data[i]) - mean) * (float64(data[i]) - mean)
					}
					variance := squares / (n * h * h)
					if e := math.Abs(float64(got[c]) - mean); !(e <= 1e-7*math.Abs(mean)+1e-6*math.Sqrt(variance)) {
						t.Errorf("channel %d: mean %v, not %v", c, got[c], mean)
					}
					if e := math.Abs(float64(got[channels+c]) - variance); !(e <= 1e-6*variance+1e-14*mean*mean) {
						t.Errorf("channel %d: variance %v, not %v", c, got[channels+c], variance)
					}
				}
			})
		}
	}
}
