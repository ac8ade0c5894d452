package network

import (
	"slices"
	"testing"

	"onlinerna/internal/simd"
	"onlinerna/nn"
)

// Evaluation has no backward phase, also where the device runs it a few images at a time.
func TestPhasesOfEvaluation(t *testing.T) {
	const images, size, classes = 512, 32, 10
	n, err := New(cpuDevice(t, 2), "resnet20", nn.Config{Classes: classes, Size: size, Mean: []float64{.5, .5, .5},
		Std: []float64{.25, .25, .25}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	var told phases
	n.Trace(&told)
	if _, err := n.Evaluate(noise(images, size, 1), make([]float32, images*classes)); err != nil {
		t.Fatal(err)
	}
	if want := []Phase{Input, Forward}; !slices.Equal(told.list, want) {
		t.Errorf("phases %v, want %v", told.list, want)
	}
	for _, ps := range n.programs {
		for _, p := range ps {
			if p != nil {
				if s := p.m.Stats(); s.Runs == s.Groups && simd.Default().Vectors() != simd.Go {
					t.Errorf("%+v: all images run at once", s)
				}
			}
		}
	}
}
