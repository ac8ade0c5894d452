package train

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"onlinerna/train/average"
	"onlinerna/train/hook"
	"onlinerna/train/network"
	"onlinerna/train/schedule"
)

// Soft targets that equal hard labels, and class weights of 1, give the losses and weights of cross-entropy by labels.
func TestTargetsAreLabels(t *testing.T) {
	c := tiny("")
	c.Epochs, c.StepsLimit, c.RNA.Mode, c.LabelSmoothing = 1, 3, average.Off, 0.1
	want := trained(t, c, cpuDevice(t, 2))
	c.ClassWeights = strings.Split("2,2,2,2,2,2,2,2,2,2", ",")
	got := trained(t, c, cpuDevice(t, 2))
	near(t, "weights", numbers(t, got.Net.Params), numbers(t, want.Net.Params), 1e-5)
}

// A net learns from mixed and augmented images with either loss.
func TestRegularizedRunLearns(t *testing.T) {
	for _, loss := range []LossKind{CrossEntropy, BCE, Focal, Asymmetric} {
		c := tiny(filepath.Join(t.TempDir(), "run"))
		c.Epochs, c.StepsLimit, c.RNA.Mode = 3, 20, average.Off
		c.Loss, c.Mixup, c.Cutmix, c.AutoAugment, c.RandomErase = loss, 0.2, 1, "ta_wide", 0.1
		c.RepeatAugment, c.LabelSmoothing = 2, 0.1
		c.Schedule = schedule.Schedule{Kind: schedule.Cosine, By: schedule.ByStep, Rate: 0.05}
		if loss == Asymmetric { // its gradients are small at first
			c.Optimizer, c.Schedule.Rate, c.Mixup, c.Cutmix, c.LabelSmoothing = "adamw", 3e-3, 0, 0, 0
			c.RepeatAugment, c.AutoAugment, c.RandomErase = 0, "", 0
		}
		if loss == BCE {
			c.Optimizer, c.Schedule.Rate, c.TargetThreshold = "lamb", 0.02, 0.2
		}
		r := trained(t, c, cpuDevice(t, 2))
		first, last := r.History[0].Train.Loss, r.History[2].SGD.Loss
		if math.IsNaN(last) || last >= first {
			t.Errorf("%s: loss %g after %g", loss, last, first)
		}
	}
}

// Training at growing sizes, evaluation at another size with flips, by bicubic interpolation.
func TestSizes(t *testing.T) {
	c := tinyColour(filepath.Join(t.TempDir(), "run"), pictures(t, 8, 4, 100))
	c.Model, c.Epochs, c.RNA.Mode, c.StepsLimit = "resnet18", 3, average.Off, 1
	c.Batch, c.Augment = 4, "imagenet"
	c.ImageSize, c.TrainSize, c.TrainFrom, c.TrainRamp = 64, 96, 32, [2]int{0, 2}
	tenth := 0.1
	c.ValResize, c.Interpolation, c.TestFlip, c.DropPath, c.Dropout = 70, "bicubic", true, &tenth, &tenth
	var sizes []int
	r := newRun(t, c, cpuDevice(t, 2), watch{Step: func(s *hook.State) error { return nil }})
	for e := range c.Epochs {
		sizes = append(sizes, r.Resolved.SizeAt(e, c.ImageSize))
	}
	if sizes[0] != 32 || sizes[1] != 64 || sizes[2] != 96 {
		t.Errorf("sizes %v", sizes)
	}
	if all := r.Resolved.Sizes(math.MaxInt, c.ImageSize); !slices.Equal(all, sizes) {
		t.Errorf("sizes %v of a run without end, want %v", all, sizes)
	}
	if err := r.Train(t.Context()); err != nil {
		t.Fatal(err)
	}
	m, err := network.ReadMeta(filepath.Join(c.Out, "final.safetensors"))
	if err != nil || m.ValResize != 70 || m.Interpolation != "bicubic" || m.ImageSize != 64 {
		t.Errorf("%+v, %v", m, err)
	}
}

// An option that the net has no layers for is an error; small images leave the last layers a pixel, which is enough.
func TestRandomLayers(t *testing.T) {
	tenth, none := .1, 0.
	for _, c := range []struct {
		model         string
		dropout, path *float64
		want          string // error
	}{
		{"mobilenet_v3_small", nil, &none, ""},
		{"mobilenet_v3_small", nil, &tenth, "drop path 0.1: mobilenet_v3_small has no stochastic depth"},
		{"resnet20", &tenth, &tenth, ""},
		{"lenet", &tenth, &none, "dropout 0.1: lenet has no dropout"},
	} {
		s := tiny("")
		s.Model, s.ImageSize, s.Dropout, s.DropPath = c.model, 32, c.dropout, c.path
		r, err := New(s, Deps{Device: cpuDevice(t, 1)})
		if err == nil {
			r.Close()
		}
		if (err != nil || c.want != "") && (err == nil || !strings.HasPrefix(err.Error(), c.want) || c.want == "") {
			t.Errorf("%s: %v, want %q", c.model, err, c.want)
		}
	}
}
