package train

import (
	"strings"
	"testing"

	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu"
	"onlinerna/nn/op"
	"onlinerna/train/hook"
)

// changing is a device whose algorithms may give different bits in each run.
type changing struct{ device.Device }

func (d changing) Unwrap() device.Device { return d.Device }
func (changing) Deterministic() bool     { return false }

// TestDevice trains only on the device that the config requires.
func TestDevice(t *testing.T) {
	narrow, err := cpu.New(cpu.Options{Threads: 1, BFloat16: true})
	if err != nil {
		t.Fatal(err)
	}
	defer narrow.Close()
	wide := cpuDevice(t, 1)
	for _, c := range []struct {
		config Spec
		dev    device.Device
		want   string // "" for a run
	}{
		{Spec{Precision: "bfloat16"}, narrow, ""},
		{Spec{Precision: "bfloat16"}, wide, "precision bfloat16: the device cpu computes in float32"},
		{Spec{Precision: "float32"}, narrow, "precision float32: the device cpu computes in bfloat16"},
		{Spec{Precision: "float32"}, wide, ""},
		{Spec{Precision: "float64"}, reference(op.Float64), ""},
		{Spec{Device: "cpu"}, wide, ""},
		{Spec{Device: "auto"}, wide, ""},
		{Spec{Device: "cuda:1"}, wide, "device cuda:1: the run is given a device cpu"},
		{Spec{Device: "reference64"}, reference(op.Float64), ""},
		{Spec{Device: "reference64"}, reference(op.Float32), "given a device reference"},
		{Spec{Deterministic: true}, wide, ""},
		{Spec{Deterministic: true}, changing{wide}, "deterministic: the device cpu"},
		{Spec{}, nil, "give Deps.Device"},
	} {
		small := tiny("")
		c.config.Batch, c.config.Epochs, c.config.StepsLimit, c.config.ValLimit = small.Batch, 1, 1, 1
		closed := 0
		r, err := New(c.config, Deps{Device: c.dev, Hooks: []hook.Hook{closing{&closed}}})
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) || closed != 1 {
				t.Errorf("%+v: error %v, want %q; its hook was closed %d times", c.config, err, c.want, closed)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s %s: %v", c.config.Device, c.config.Precision, err)
			continue
		}
		if err := r.Train(t.Context()); err != nil {
			t.Error(err)
		}
		r.Close()
	}
}

// closing counts the calls of its Close.
type closing struct{ closed *int }

func (closing) Name() string   { return "closing" }
func (c closing) Close() error { *c.closed++; return nil }
