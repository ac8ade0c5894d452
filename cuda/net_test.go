//go:build gpu && cgo

package cuda

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"onlinerna/cuda/check/gputest"
	"onlinerna/cuda/check/sim"
	"onlinerna/cuda/driver"
	"onlinerna/cuda/lazy"
	"onlinerna/nn/device"
	"onlinerna/rna"
)

func openNet(t *testing.T) *Net {
	t.Helper()
	d, err := OpenNet(0, NetOptions{Context: Options{KernelCache: gputest.KernelCache, ExactMemory: true},
		Deterministic: true})
	check(t, err)
	t.Cleanup(func() { check(t, d.Close()) })
	return d.(*Net)
}

// Snapshots of vectors and combinations into them stay on the GPU.
func TestNetSpace(t *testing.T) {
	gputest.NeedDNN(t)
	d := openNet(t)
	const n = 1000
	v, err := d.NewVector(n)
	check(t, err)
	defer v.Free()
	space, err := d.NewSpace(n)
	check(t, err)
	w, err := rna.NewWindow(space, 3)
	check(t, err)
	defer func() { check(t, w.Close()) }()
	for i := range 4 {
		check(t, v.Fill(float64(i*i))) // asynchronous: the space waits for it
		check(t, w.Push(v))
	}
	if s, ok := v.(driver.Resident); !ok {
		t.Error("a vector is not in the GPU's memory")
	} else if _, ok := s.Float32Span(1, n); ok {
		t.Error("elements behind the end are there")
	}
	check(t, w.Average(v, 2)) // of 4 and 9
	check(t, v.AddScaled(1, v))
	norm, err := v.Norm()
	check(t, err)
	if want := 13 * math.Sqrt(n); math.Abs(norm-want) > 1e-9 {
		t.Errorf("norm %v, want %v", norm, want)
	}
}

func TestNetSpaceBytes(t *testing.T) {
	gputest.NeedDNN(t)
	d := openNet(t)
	one, two := d.SpaceBytes(1<<20, 10), d.SpaceBytes(1<<20, 11)
	if two-one < 4<<20 || one < 10*4<<20+DefaultReserve {
		t.Errorf("a space takes %d bytes, with one more vector %d", one, two)
	}
}

// An outdated cuDNN is reported with the remedy, and RNA runs without it.
func TestFaultOfOldDNN(t *testing.T) {
	gputest.Fault(t, "")
	gputest.NeedDNN(t)
	t.Setenv("RNA_SIM_CUDNN", "8")
	_, err := OpenNet(0, NetOptions{})
	for _, want := range []string{"cuDNN 8.9.7 is too old, needed is 9.0.0 or newer: " + lazy.CuDNN.File(),
		"pip install"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: no %q", err, want)
		}
	}
	r := Look()
	var b bytes.Buffer
	check(t, r.Print(&b))
	for _, want := range []string{"cuDNN          8.9.7, cannot be used; RNA does without, nets need it",
		"cuDNN 8.9.7 is too old", "RNA can run on the GPU"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, &b)
		}
	}
	if r.Net() >= 0 || !r.Usable() {
		t.Errorf("nets on GPU %d, RNA on one: %v", r.Net(), r.Usable())
	}
}

// A card without bfloat16 computes in float16 unless it is told otherwise.
func TestFaultOfTuring(t *testing.T) {
	gputest.Fault(t, "")
	gputest.NeedDNN(t)
	sim.Alone(t, "", func(string) {
		d, _ := device.Find("cuda")
		if p := d.Recorded("0", ""); p != "float16" {
			t.Errorf("a run on sm_75 records %q", p)
		}
		dev, err := d.Open("", device.Options{Warn: func(string) {}})
		check(t, err)
		if p, ok := device.As[device.Precise](dev); !ok || p.Precision() != "float16" {
			t.Errorf("sm_75 computes in %q", p.Precision())
		}
		check(t, dev.Close())
	}, "RNA_SIM_ARCH=75")
	if d, _ := device.Find("cuda"); d.Recorded("0", "") != "bfloat16" {
		t.Error("sm_90 does not record bfloat16")
	}
}

// On a machine with several GPUs, some busy: the visible ones are listed, the free one is chosen, each ran a
// convolution.
func TestFaultOfManyGPUs(t *testing.T) {
	gputest.Fault(t, "")
	gputest.NeedDNN(t)
	t.Setenv("RNA_SIM_DEVICES", "4")
	t.Setenv("RNA_SIM_USED", "0:1000000000,2:900000000")
	look := func() (*Report, string) {
		t.Helper()
		before := sim.Calls("cuDevicePrimaryCtxRetain")
		r := Look()
		if sim.Calls("cuDevicePrimaryCtxRetain") != before {
			t.Error("Look opens a GPU")
		}
		var b bytes.Buffer
		check(t, r.Print(&b))
		return r, b.String()
	}
	r, _ := look()
	if len(r.GPUs) != 4 || r.Net() != 1 || len(r.InUse(1)) != 1 || r.GPUs[0].Free > 100<<20 || r.GPUs[3].Tried {
		t.Errorf("GPU %d of %+v", r.Net(), r.GPUs)
	}
	r.Try()
	if r.Net() != 1 || r.GPUs[0].Free > 100<<20 || !r.GPUs[3].Tried {
		t.Errorf("GPU %d of %+v, tried", r.Net(), r.GPUs)
	}
	t.Setenv("RNA_SIM_SLOWED", "4")
	if _, said := look(); !strings.Contains(said, "1500 MHz, 65 of 100 W, 41 °C, slowed by: power limit\n") {
		t.Errorf("no clocks in\n%s", said)
	}
	d, err := OpenNet(2, NetOptions{})
	check(t, err)
	if free, _, err := d.(*Net).Room(); err != nil || free > 200<<20 {
		t.Errorf("%d bytes are free beside another process, %v", free, err)
	}
	check(t, d.Close())
	id := r.GPUs[3].UUID
	if len(id) != 40 || !strings.HasPrefix(id, "GPU-") {
		t.Errorf("UUID %q", id)
	}
	for visible, want := range map[string]int{"2,3": 1, "3," + r.GPUs[2].UUID: 0, id: 0} {
		t.Setenv("CUDA_VISIBLE_DEVICES", visible)
		if r, said := look(); r.Net() != want || !strings.Contains(said,
			"sees the GPUs of CUDA_VISIBLE_DEVICES="+visible+"\n") || strings.Contains(said, "stops at") {
			t.Errorf("%s: GPU %d; want %d\n%s", visible, r.Net(), want, said)
		}
	}
	t.Setenv("CUDA_VISIBLE_DEVICES", "1,9,2")
	if _, said := look(); !strings.Contains(said, "CUDA_VISIBLE_DEVICES names 3 GPUs and the driver finds 1: ") {
		t.Error(said)
	}
	t.Setenv("RNA_SIM_MIG", "1")
	if _, said := look(); !strings.Contains(said, "1500 MHz, 65 W, 41") {
		t.Errorf("no clocks of a part in\n%s", said)
	}
	t.Setenv("CUDA_VISIBLE_DEVICES", "MIG-"+id[4:])
	if r, _ := look(); len(r.GPUs) != 1 || r.GPUs[0].UUID != "MIG-"+id[4:] || r.Net() != 0 {
		t.Errorf("%+v", r.GPUs)
	}
	t.Setenv("RNA_SIM_CUDART", "13000")
	if r, said := look(); r.Net() >= 0 || !strings.Contains(said, "is for CUDA 13, and the driver supports CUDA 12.9") {
		t.Error(said)
	}
}
