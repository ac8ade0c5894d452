package average_test

import (
	"context"
	"testing"

	"onlinerna/nn/device"
	"onlinerna/train"
	"onlinerna/train/average"
	"onlinerna/train/hook"
	"onlinerna/train/internal/traintest"
	"onlinerna/train/network"
)

// Short names for the shared helpers of training tests.
var (
	pictures   = traintest.Pictures
	cpuDevice  = traintest.CPU
	numbers    = traintest.Numbers
	near, mean = traintest.Near, traintest.Mean
	uniform    = traintest.Uniform
	files      = traintest.Files
)

// tiny is a run of LeNet on a few glyphs.
func tiny(out string) train.Spec {
	return traintest.Spec(train.Options(), train.Spec{Out: out}, traintest.Tiny)
}

// tinyColour is a run of a model with BatchNorm on pictures.
func tinyColour(out, pictures string) train.Spec {
	return traintest.Spec(train.Options(), train.Spec{Out: out, Data: pictures}, traintest.TinyColour)
}

type watch = traintest.Watch

// trained returns a finished run.
func trained(t testing.TB, c train.Spec, dev device.Device, hooks ...hook.Hook) *train.Run {
	t.Helper()
	r, err := train.New(c, train.Deps{Device: dev, Hooks: hooks})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	if err := r.Train(context.Background()); err != nil {
		t.Fatal(err)
	}
	return r
}

// rnaOf returns the RNA hook of a run.
func rnaOf(r *train.Run) *average.RNA { return r.Hook("rna").(*average.RNA) }

// seen is a hook that records the state of the last epoch, so that the test can use it as a hook would.
type seen struct{ *hook.State }

func (*seen) Name() string { return "seen" }

func (h *seen) AfterEpoch(_ context.Context, s *hook.State) error {
	h.State = s
	return nil
}

// at reads weights from a file as flat vectors.
func at(t testing.TB, r *train.Run, path string) (params, stats []float64) {
	t.Helper()
	n, err := network.New(r.Net.Device, r.Resolved.Model, r.Net.Model().Config, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	if _, err := n.LoadWeights(path); err != nil {
		t.Fatal(err)
	}
	if n.Stats != nil {
		stats = numbers(t, n.Stats)
	}
	return numbers(t, n.Params), stats
}
