//go:build gpu && cgo

package net

import (
	"slices"
	"strings"
	"testing"

	"onlinerna/cuda/check/gputest"
	"onlinerna/cuda/check/sim"
	"onlinerna/cuda/driver"
	"onlinerna/cuda/number"
	"onlinerna/nn/device"
)

// The limits are positive, the net's own precision comes first, and the measurement frees its memory.
func TestNetLimits(t *testing.T) {
	dev := opened(t, Options{Precision: number.BFloat16})
	d := dev.(*Device)
	before, err := d.c.Stats()
	check(t, err)
	l, err := dev.(device.Gauge).Limits()
	check(t, err)
	var names []string
	for _, p := range l.Products {
		if names = append(names, p.Name); p.Speed <= 0 || !strings.Contains(p.How, "cuBLAS") {
			t.Errorf("%+v", p)
		}
	}
	if !slices.Equal(names, []string{"bfloat16", "float32", "tf32", "float16"}) {
		t.Errorf("products in %v", names)
	}
	if l.Bandwidth.Speed <= 0 || !strings.HasPrefix(l.Bandwidth.How, "copy of ") {
		t.Errorf("bandwidth %+v", l.Bandwidth)
	}
	if after, err := d.c.Stats(); err != nil || after.Used != before.Used || after.Peak != after.Used ||
		after.Cached != 0 {
		t.Errorf("%+v before, then %+v, %v", before, after, err)
	}
	t.Logf("%+v", l)
}

func TestNetRoom(t *testing.T) {
	dev := opened(t, Options{})
	d := dev.(*Device)
	free, spare, err := d.Room()
	check(t, err)
	v, err := dev.NewVector(1 << 20)
	check(t, err)
	less, _, err := d.Room()
	check(t, err)
	if spare <= 0 || spare > mostSpared || spare >= free || free-less < 4<<20 || free-less > 8<<20 {
		t.Errorf("%d bytes are free, %d of them spared; %d after an allocation of 4 MiB", free, spare, less)
	}
	v.Free()
	if again, _, err := d.Room(); err != nil || again != free {
		t.Errorf("%d bytes are free again, there were %d, %v", again, free, err)
	}
	if peak, err := d.PeakMemory(); err != nil || peak < 4<<20 {
		t.Errorf("peak of %d bytes, %v", peak, err)
	}
	if d.Card() == "" {
		t.Error("the card has no name")
	}
}

// A precision that the card lacks is left out, unless it is the net's own.
func TestFaultOfNetLimits(t *testing.T) {
	gputest.NeedDNN(t)
	fault(t, "")
	for p, want := range map[number.Precision][]string{number.Float32: {"float32"}, number.BFloat16: nil} {
		dev, err := openNet(Options{Precision: p})()
		check(t, err)
		check(t, sim.Fault("cublasGemmEx@0=15"))
		l, err := dev.(device.Gauge).Limits()
		check(t, sim.Fault(""))
		if want == nil {
			if err == nil || !strings.Contains(err.Error(), "products in bfloat16: cuda: cublasGemmEx") {
				t.Errorf("%v", err)
			}
		} else if err != nil || len(l.Products) != 1 || l.Products[0].Name != want[0] {
			t.Errorf("%+v, %v", l, err)
		}
		check(t, dev.Close())
	}
}

// cuBLAS gets the workspace that NVIDIA recommends for the card.
func TestBlasWorkspace(t *testing.T) {
	for _, test := range []struct {
		major  int
		memory int64
		want   int64
	}{{8, 40 << 30, 4 << 20}, {9, 80 << 30, 32 << 20}, {10, 180 << 30, 32 << 20}, {9, 8 << 20, 4 << 20}} {
		if got := blasWorkspace(driver.Info{Major: test.major, Memory: test.memory}); got != test.want {
			t.Errorf("compute capability %d, %d bytes: %d, want %d", test.major, test.memory, got, test.want)
		}
	}
}
