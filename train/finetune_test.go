package train

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"onlinerna/data"
	"onlinerna/train/schedule"
)

// counted is a set of that many images of ten classes.
type counted struct {
	fakeSet
	images int
}

func (s counted) Len() int { return s.images }

// TestFineTuneDefaults: a run from given weights has short epochs of at least ten steps and a low learning rate,
// whatever the data.
func TestFineTuneDefaults(t *testing.T) {
	for _, c := range []struct {
		images, batch, epochs int
	}{{10, 2, 30}, {48, 4, 30}, {100, 10, 30}, {1000, 32, 20}, {3000, 32, 15}, {50000, 32, 10}, {1281167, 32, 10}} {
		for _, kind := range []string{"glyphs", "mnist", "cifar", "imagenet"} {
			cfg := Spec{Init: "weights.pth"}
			p := colour(kind)
			if err := resolveSpec(&cfg, counted{fakeSet{10, 3}, c.images}, p); err != nil {
				t.Fatal(err)
			}
			rate := tuneRate / tuneBatch * float64(c.batch)
			want := schedule.Schedule{Kind: schedule.Cosine, By: schedule.ByStep, Rate: rate, Epochs: c.epochs}
			if cfg.Batch != c.batch || cfg.Accumulate != 1 || cfg.Epochs != c.epochs || !reflect.DeepEqual(cfg.Schedule, want) ||
				cfg.HeadRate != tuneHead*rate {
				t.Errorf("%s, %d images: batch %d × %d, %d epochs, head %g, %+v", kind, c.images, cfg.Batch, cfg.Accumulate,
					cfg.Epochs, cfg.HeadRate, cfg.Schedule)
			}
			if c.images >= 20 && c.images/(cfg.Batch*cfg.Accumulate) < 10 {
				t.Errorf("%s, %d images: fewer than 10 steps an epoch", kind, c.images)
			}
			again := cfg
			if err := resolveSpec(&again, counted{fakeSet{10, 3}, c.images}, p); err != nil || !reflect.DeepEqual(again, cfg) {
				t.Errorf("resolving twice gives %+v, %v", again, err)
			}
		}
	}
}

// TestFineTuneKeeps: the user's options win, and the learning rate follows the batch that they give.
func TestFineTuneKeeps(t *testing.T) {
	resolve := func(c Spec) Spec {
		t.Helper()
		c.Init = "weights.pth"
		if err := resolveSpec(&c, counted{fakeSet{10, 3}, 1000}, colour("imagenet")); err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := resolve(Spec{Batch: 64, Epochs: 3, Schedule: schedule.Schedule{Kind: schedule.Step, Rate: 0.3}})
	if c.Batch != 64 || c.Accumulate != 1 || c.Epochs != 3 || c.HeadRate != 0 || c.Schedule.Kind != schedule.Step ||
		c.Schedule.Rate != 0.3 || c.Schedule.By != "" {
		t.Errorf("resolved to %+v", c)
	}
	if c := resolve(Spec{Batch: 8}); c.Schedule.Rate != tuneRate/4 || c.HeadRate != tuneHead*tuneRate/4 {
		t.Errorf("batch 8: rate %g, head %g", c.Schedule.Rate, c.HeadRate)
	}
	if c := resolve(Spec{Batch: 9}); !strings.Contains(c.OptimizerLine(), "rate 0.005625 falling to 0 by half a cosine "+
		"by step, the last layer's 0.028125,") {
		t.Errorf("batch 9: %s", c.OptimizerLine())
	}
	if c := resolve(Spec{Accumulate: 4}); c.Batch != 8 || c.Accumulate != 4 || c.Schedule.Rate != tuneRate {
		t.Errorf("4 batches a step: batch %d × %d, rate %g", c.Batch, c.Accumulate, c.Schedule.Rate)
	}
	if c := resolve(Spec{HeadRate: 0.2}); c.HeadRate != 0.2 {
		t.Errorf("head %g", c.HeadRate)
	}
	if c := resolve(Spec{Holdout: 0.9}); c.Batch != 10 || c.Epochs != 30 {
		t.Errorf("100 images left: batch %d, %d epochs", c.Batch, c.Epochs)
	}
	c = resolve(Spec{Optimizer: "adamw"})
	if math.Abs(c.Schedule.Rate-1e-4) > 1e-12 || !strings.Contains(c.OptimizerLine(), "the last layer's 0.0005,") {
		t.Errorf("adamw: %s", c.OptimizerLine())
	}
}

var _ data.Dataset = counted{}
