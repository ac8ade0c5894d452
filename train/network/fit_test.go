package network

import (
	"errors"
	"strings"
	"testing"

	"onlinerna/nn"
	"onlinerna/nn/device"
)

// card is a device with little memory of its own.
type card struct {
	device.Device
	free int64
}

func (d *card) Room() (free, spare int64, err error) { return d.free, 0, nil }

func (d *card) PeakMemory() (int64, error) { return 0, nil }

// bounded is a device that takes tensors of few elements.
type bounded struct{ card }

func (d *bounded) LargestTensor() int { return 100_000 }

// LeNet's largest tensor is conv1's output of 28·28·6 elements an image.
func TestLargestTensor(t *testing.T) {
	n, err := New(&bounded{card{Device: cpuDevice(t, 1), free: 1 << 30}}, "lenet", nn.Config{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	f, err := n.Fit(1000, 0)
	if err != nil || f.Batch != 16 || f.Bound != "a device cpu takes tensors of at most 100000 elements" {
		t.Errorf("%+v, %v; want batch 16", f, err)
	}
	var e *device.BoundError
	if err := n.CheckBatch(22, 0); !errors.As(err, &e) || e.Shape.Size() != 22*28*28*6 {
		t.Errorf("batch 22: %v", err)
	}
	if err := n.CheckBatch(21, 0); err != nil {
		t.Error(err)
	}
}

// Where one image is too few for a batch normalisation, the search begins with two.
func TestFitOfSmallImages(t *testing.T) {
	n, err := New(&card{Device: cpuDevice(t, 1), free: 1 << 30}, "mobilenet_v3_small", nn.Config{Classes: 2, Size: 32}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	if f, err := n.Fit(5, 0); err != nil || f.Batch != 4 {
		t.Errorf("%+v, %v; want batch 4", f, err)
	}
	for _, batch := range []int{2, 16} {
		if err := n.CheckBatch(batch, 0); err != nil {
			t.Errorf("batch %d: %v", batch, err)
		}
	}
	two, err := n.BatchBytes(2)
	if err != nil {
		t.Fatal(err)
	}
	n.Device.(*card).free = two - 1
	var short *MemoryError
	if err := n.CheckBatch(2, 0); !errors.As(err, &short) || short.Batch != 2 || short.Fits != 0 {
		t.Errorf("too little memory: %v", err)
	}
	if _, err := n.Fit(5, 0); !errors.As(err, &short) || short.Batch != 2 || short.Bytes != two {
		t.Errorf("too little memory for two: %v", err)
	}
	n.Device.(*card).free = 1 << 30
	for _, fails := range []error{n.CheckBatch(1, 0), func() error { _, err := n.Fit(1, 0); return err }()} {
		if fails == nil || !strings.Contains(fails.Error(), "use a larger batch") {
			t.Errorf("one image: %v", fails)
		}
	}
}

func TestUsual(t *testing.T) {
	for n, want := range map[int]int{0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 7: 4, 8: 8, 15: 8, 16: 16, 1000: 1000, 1001: 1000} {
		if got := usual(n); got != want {
			t.Errorf("usual(%d) = %d, want %d", n, got, want)
		}
	}
}

func TestLargest(t *testing.T) {
	line := func(n int) int64 { return 1000 + 100*int64(n) }
	// large batches use no workspace; the search does not look for them beyond batches that do not fit
	step := func(n int) int64 {
		if n < 64 {
			return line(n) + 5000
		}
		return line(n)
	}
	for _, c := range []struct {
		bytes       func(int) int64
		limit       int64
		most, wants int
	}{
		{line, 1099, 512, 0}, {line, 1100, 512, 1}, {line, 1299, 512, 2}, {line, 1400, 512, 4}, {line, 1799, 512, 4},
		{line, 1800, 512, 8},
		{line, 4199, 512, 24}, {line, 4200, 512, 32}, {line, 1 << 40, 512, 512}, {line, 1 << 40, 3, 2}, {line, 1 << 40, 1, 1},
		{line, 101_000, 1 << 16, 1000}, {step, 9000, 512, 24}, {step, 6000, 512, 0},
	} {
		plans := 0
		got, takes, err := largest(usual(c.most), c.limit, func(n int) (int64, error) { plans++; return c.bytes(n), nil })
		if err != nil || got != c.wants || plans > fitPlans || got > 0 && takes != c.bytes(got) {
			t.Errorf("limit %d of %d: %d with %d bytes after %d plans, %v; want %d",
				c.limit, c.most, got, takes, plans, err, c.wants)
		}
	}
	broken := errors.New("broken")
	if _, _, err := largest(512, 1<<40, func(n int) (int64, error) { return 0, broken }); err != broken {
		t.Errorf("what can't be planned at all: %v", err)
	}
	got, _, err := largest(512, 1<<40, func(n int) (int64, error) {
		if n > 100 {
			return 0, broken
		}
		return line(n), nil
	})
	if err != nil || got < 64 || got > 96 {
		t.Errorf("where 100 images are the most that a kernel takes: %d, %v", got, err)
	}
}

// CheckBatch judges a batch of any size without planning it.
func TestCheckBatch(t *testing.T) {
	n, err := New(&card{Device: cpuDevice(t, 1), free: 12 << 20}, "lenet", nn.Config{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	if err := n.CheckBatch(8, 0); err != nil {
		t.Error(err)
	}
	var m *MemoryError
	if _, err := New(cpuDevice(t, 1), "lenet", nn.Config{Classes: 1 << 40}, 1); !errors.As(err, &m) ||
		m.Fits > 0 || m.Bytes < 1<<49 {
		t.Errorf("a trillion classes: %v", err)
	}
	if err := n.CheckBatch(1<<40, 0); !errors.As(err, &m) || m.Fits < 8 || m.Bytes < 1<<50 {
		t.Errorf("%v", err)
	}
}
