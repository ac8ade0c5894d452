package evaluate

import (
	"context"
	"encoding/json"
	"io"
	"path/filepath"
	"testing"
	"time"

	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu"
	"onlinerna/train/network"
	"onlinerna/train/ranks"
	"onlinerna/train/ranks/rankstest"
)

// Ranks report the bits of one process: counts, and measures of the order of all images.
func TestRanksReportAsOne(t *testing.T) {
	open := func(*ranks.Group, int) (device.Device, error) { return cpu.New(cpu.Options{Threads: 1}) }
	dev, err := open(nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	net, err := network.New(dev, "lenet", nn.Config{Classes: 10, Channels: 1, Size: 28, Mean: []float64{.25},
		Std: []float64{.25}}, 3)
	if err != nil {
		t.Fatal(err)
	}
	weights := filepath.Join(t.TempDir(), "w.safetensors")
	err = net.SaveWeights(weights, net.Params, net.Stats, network.Meta{Model: "lenet", ImageSize: 28,
		Mean: []float64{.25}, Std: []float64{.25}})
	if err != nil {
		t.Fatal(err)
	}
	report := func(g *ranks.Group) (*Report, error) {
		o := Options{Weights: weights, Data: "glyphs", Batch: 37, Workers: 1, Threads: 1, Open: open, Ranking: true}
		return o.Run(context.Background(), g, io.Discard, io.Discard)
	}
	one, err := report(nil)
	if err != nil {
		t.Fatal(err)
	}
	measures := func(r *Report) []byte {
		r.Calibration, r.Score.Loss = 0, 0 // sums in another order
		b, err := json.Marshal(r)
		if err != nil {
			t.Error(err)
		}
		return b
	}
	want := measures(one)
	if one.AUC == nil || !one.AUC.Defined() || one.AP.Error <= 0 {
		t.Fatalf("%s", want)
	}
	for _, n := range []int{2, 3} {
		rankstest.Run(t, n, time.Minute, func(g *ranks.Group) error {
			r, err := report(g)
			if err != nil || !g.First() {
				return err
			}
			if got := measures(r); string(got) != string(want) {
				t.Errorf("%d ranks: %s, want %s", n, got, want)
			}
			return nil
		})
	}
}
