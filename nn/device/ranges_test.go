package device_test

import (
	"errors"
	"slices"
	"testing"

	"onlinerna/nn/device"
	"onlinerna/nn/op"
)

// annotated is a device that notes its ranges.
type annotated struct {
	device.Device
	profiled bool
	seen     []string
}

func (a *annotated) Profiled() bool    { return a.profiled }
func (a *annotated) Begin(name string) { a.seen = append(a.seen, name) }
func (a *annotated) End()              { a.seen = append(a.seen, "") }

// Ranges are closed, after errors too, and name nothing without a profiler.
func TestRanges(t *testing.T) {
	failed := errors.New("failed")
	for _, profiled := range []bool{false, true} {
		a := &annotated{Device: device.NewReference(op.Float32), profiled: profiled}
		r := device.RangesOf(a)
		r.Turn("wait")
		r.Turn("step")
		if err := r.In("forward", func() error { return failed }); err != failed {
			t.Errorf("error %v", err)
		}
		r.Turn("")
		r.Turn("")
		want := []string{"wait", "", "step", "forward", "", ""}
		if !profiled {
			want = nil
		}
		if !slices.Equal(a.seen, want) {
			t.Errorf("profiled: %v: %q, want %q", profiled, a.seen, want)
		}
	}
	if device.RangesOf(device.NewReference(op.Float32)) != nil {
		t.Error("a device without ranges has some")
	}
}
