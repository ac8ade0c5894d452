package train_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"math"
	"os"
	"path/filepath"
	"testing"

	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu"
	"onlinerna/train"
	"onlinerna/train/average"
	"onlinerna/train/hook"
	"onlinerna/train/network"
)

// swa is stochastic weight averaging (Izmailov et al., 2018) as a hook: the plain average of the weights at the ends of
// epochs, starting at a given epoch.
type swa struct {
	from, n int           // first epoch; iterates in the average
	mean    device.Vector // of the iterates
}

func (*swa) Name() string         { return "swa" }
func (*swa) Holds() hook.Holdings { return hook.Holdings{Weights: 1} }

func (h *swa) Open(s *hook.State) (err error) {
	h.mean, err = s.Net.NewParams()
	return err
}

func (h *swa) AfterEpoch(ctx context.Context, s *hook.State) error {
	if s.Epoch < h.from {
		return nil
	}
	h.n++
	a := 1 / float64(h.n)
	if err := errors.Join(h.mean.AddScaled(-a, h.mean), h.mean.AddScaled(a, s.Net.Params)); err != nil {
		return err
	}
	return s.Temporarily(func() error {
		if err := errors.Join(s.Net.Params.Copy(h.mean), s.Recalibrate(ctx)); err != nil {
			return err
		}
		score, err := s.Evaluate(ctx)
		if err != nil {
			return err
		}
		s.Record.Others = append(s.Record.Others, hook.ScoreRecord{Kind: "swa", Score: *score})
		return errors.Join(s.Judge(ctx, "swa", score), s.Keep("swa", "swa"))
	})
}

func (h *swa) Save(s *hook.State, dir string) (json.RawMessage, error) {
	if h.n == 0 {
		return json.Marshal(h.n)
	}
	err := s.Net.SaveVector(filepath.Join(dir, "swa.safetensors"), h.mean)
	return json.RawMessage(fmt.Sprint(h.n)), err
}

func (h *swa) Load(s *hook.State, dir string, small json.RawMessage) error {
	if err := json.Unmarshal(small, &h.n); err != nil || h.n == 0 {
		return err
	}
	return s.Net.LoadVector(filepath.Join(dir, "swa.safetensors"), h.mean)
}

func (h *swa) Close() error {
	if h.mean != nil {
		h.mean.Free()
	}
	return nil
}

// A hook outside this package can do all that RNA and the power average do: here stochastic weight averaging.
func Example_average() {
	dev, err := cpu.New(cpu.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	run, err := train.New(train.Spec{Data: "glyphs", Epochs: 3, StepsLimit: 4, ValLimit: 1,
		RNA: average.Options{Mode: average.Off}}, train.Deps{Device: dev, Hooks: []hook.Hook{&swa{from: 2}}})
	if err != nil {
		log.Fatal(err)
	}
	defer run.Close()
	if err := run.Train(context.Background()); err != nil {
		log.Fatal(err)
	}
	for _, epoch := range run.History {
		for _, x := range epoch.Others {
			fmt.Printf("epoch %d: %s scored on %d images\n", epoch.Epoch, x.Kind, x.Score.Images)
		}
	}
	// Output:
	// epoch 2: swa scored on 128 images
	// epoch 3: swa scored on 128 images
}

// stop ends a run after a step.
type stop struct {
	step int
	f    func()
}

func (stop) Name() string { return "stop" }

func (h stop) AfterStep(_ context.Context, s *hook.State) error {
	if s.Steps == h.step {
		h.f()
	}
	return nil
}

// The hook keeps the average, with the kind and score in the record, and an interrupted run arrives at the same
// weights.
func TestOutsideHook(t *testing.T) {
	dev, err := cpu.New(cpu.Options{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	dir := t.TempDir()
	config := func(name string) train.Spec {
		return train.Spec{Data: "glyphs", Batch: 8, Epochs: 4, StepsLimit: 3, ValLimit: 2, Seed: 3, CheckpointEvery: 1,
			Out: filepath.Join(dir, name),
			RNA: average.Options{Mode: average.Off}}
	}
	finish := func(r *train.Run, err error) *train.Run {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if err := r.Train(t.Context()); err != nil {
			t.Fatal(err)
		}
		return r
	}
	var iterates [][]float64
	whole := finish(train.New(config("whole"), train.Deps{Device: dev, Hooks: []hook.Hook{&swa{from: 2},
		each(func(s *hook.State) error {
			x := make([]float64, s.Net.Params.Len())
			iterates = append(iterates, x)
			return s.Net.Params.ReadAt64(x, 0)
		})}}))
	path := filepath.Join(dir, "whole", "swa.safetensors")
	meta, err := network.ReadMeta(path)
	if err != nil || meta.Kind != "swa" || meta.Epoch != 4 {
		t.Errorf("%+v, %v", meta, err)
	}
	net, err := network.New(dev, meta.Model, whole.Net.Model().Config, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer net.Close()
	if _, err := net.LoadWeights(path); err != nil {
		t.Fatal(err)
	}
	got := make([]float64, net.Params.Len())
	if err := net.Params.ReadAt64(got, 0); err != nil {
		t.Fatal(err)
	}
	for i, x := range got {
		want := (iterates[1][i] + iterates[2][i] + iterates[3][i]) / 3
		if math.Abs(x-want) > 1e-6 {
			t.Fatalf("weight %d is %g, want %g", i, x, want)
		}
	}
	if h := whole.History; len(h[0].Others) != 0 || len(h[3].Others) != 1 || h[3].Others[0].Kind != "swa" ||
		h[3].Others[0].Score.Images != 16 {
		t.Errorf("%+v", h[3].Others)
	}

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := train.New(config("parts"), train.Deps{Device: dev, Hooks: []hook.Hook{&swa{from: 2}, stop{8, cancel}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Train(ctx); !errors.Is(err, train.ErrInterrupted) {
		t.Fatal(err)
	}
	r.Close()
	finish(train.Resume(filepath.Join(dir, "parts"), train.Deps{Device: dev, Hooks: []hook.Hook{&swa{from: 2}}}, nil))
	again, err := os.ReadFile(filepath.Join(dir, "parts", "swa.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	if want, err := os.ReadFile(path); err != nil || !bytes.Equal(again, want) {
		t.Errorf("the average of the resumed run differs, %v", err)
	}
}

// each is a hook that runs at the end of each epoch.
type each func(s *hook.State) error

func (each) Name() string                                        { return "each" }
func (f each) AfterEpoch(_ context.Context, s *hook.State) error { return f(s) }
