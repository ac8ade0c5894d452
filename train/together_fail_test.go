package train

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"onlinerna/data"
	"onlinerna/data/imaging"
	"onlinerna/nn/device"
	"onlinerna/nn/op"
	"onlinerna/train/average"
	"onlinerna/train/hook"
	"onlinerna/train/ranks"
	"onlinerna/train/ranks/rankstest"
)

// failingSet cannot read its images once failing is set.
type failingSet struct {
	data.Dataset
	failing atomic.Bool
}

var errLost = errors.New("the rank has lost its disk")

func (s *failingSet) Read(i int, region data.Region, scratch *data.Scratch) (*imaging.Image, error) {
	if s.failing.Load() {
		return nil, fmt.Errorf("image %d: %w", i, errLost)
	}
	return s.Dataset.Read(i, region, scratch)
}

// An error of one rank's hooks or data ends all ranks with its text, without a wait for a timeout.
func TestRankFails(t *testing.T) {
	t.Parallel()
	place := pictures(t, 13, 6, 12)
	open := func(t *testing.T) (data.Dataset, data.Dataset) {
		train, val, err := data.Open(place, data.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return train, val
	}
	const steps = 3 // of three ranks with batches of two images: 13 images
	type failing struct {
		name    string
		hook    func(fail func() error) watch
		online  bool
		tensors bool
	}
	at := func(step int) func(fail func() error) watch {
		return func(fail func() error) watch {
			return watch{Step: func(s *hook.State) error {
				if s.Step.Step == step {
					return fail()
				}
				return nil
			}}
		}
	}
	cases := []failing{
		{name: "hook after the first step", hook: at(1)},
		{name: "hook after a step", hook: at(steps - 1)},
		{name: "hook after the last step", hook: at(steps)},
		{name: "hook after the run's last step", hook: at(2 * steps)},
		{name: "hook after an epoch", hook: func(fail func() error) watch {
			return watch{Epoch: func(*hook.State) error { return fail() }}
		}},
		{name: "hook after an epoch beside TensorBoard", tensors: true, hook: func(fail func() error) watch {
			return watch{Epoch: func(*hook.State) error { return fail() }}
		}},
		{name: "training images"}, {name: "validation images"}, {name: "images of the recalibration", online: true},
	}
	for _, c := range cases {
		for _, who := range []int{0, 2} {
			t.Run(fmt.Sprintf("%s of rank %d", c.name, who), func(t *testing.T) {
				out := filepath.Join(t.TempDir(), "run")
				errs := rankstest.Errors(t, 3, 10*time.Second, func(g *ranks.Group) error {
					train, val := open(t)
					trainSet, valSet := &failingSet{Dataset: train}, &failingSet{Dataset: val}
					own := g.Rank() == who
					var w watch
					switch {
					case c.hook != nil:
						w = c.hook(func() error {
							if own {
								return errLost
							}
							return nil
						})
					default:
						images := map[string]*failingSet{"training images": trainSet, "validation images": valSet,
							"images of the recalibration": trainSet}[c.name]
						w.Step = func(s *hook.State) error {
							if want := map[bool]int{true: 2 * steps, false: 1}[c.online]; own && s.Step.Step == want {
								images.failing.Store(true)
							}
							return nil
						}
					}
					spec := Spec{Model: "conv6", Batch: 2, Epochs: 2, Seed: 3, Out: out, TensorBoard: c.tensors,
						MaxBad: new(data.MaxBad), RNA: average.Options{Mode: average.Off}}
					if c.online {
						spec.RNA = average.Options{Mode: average.Offline, Window: 2}
					}
					r, err := New(spec, Deps{Device: device.NewReference(op.Float64), Ranks: g, Train: trainSet, Val: valSet,
						Hooks: []hook.Hook{w}})
					if err != nil {
						return err
					}
					err = r.Train(context.Background())
					return errors.Join(err, r.Close())
				})
				for k, err := range errs {
					if !Common(err) || errors.Is(err, ranks.ErrTimeout) || !strings.Contains(err.Error(), errLost.Error()) {
						t.Errorf("rank %d: %v", k, err)
					}
				}
			})
		}
	}
}
