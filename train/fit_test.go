package train

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"onlinerna/nn/device"
	"onlinerna/rna"
	"onlinerna/train/network"
)

// card is a device with little memory of its own.
type card struct {
	device.Device
	free, spare int64
	err         error
}

func (d *card) Name() string { return "card" }

func (d *card) Room() (free, spare int64, err error) { return d.free, d.spare, d.err }

func (d *card) PeakMemory() (int64, error) { return 0, nil }

func (d *card) NewSpace(dim int) (rna.Space, error) { return rna.NewHost32(dim, 1) }

func (d *card) SpaceBytes(dim, vectors int) int64 { return int64(vectors) * 4 * int64(dim) }

// The batch found fits and the next one does not; the whole run, with its hooks, stays within the allowed memory.
func TestAutoBatch(t *testing.T) {
	dev := &card{Device: cpuDevice(t, 1), free: 12 << 20, spare: 1 << 20}
	c := tiny(t.TempDir())
	c.Batch = AutoBatch
	r := newRun(t, c, dev)
	batch := r.Resolved.Batch
	if batch < 16 || batch%8 != 0 || r.Resolved.Fit == nil || r.Resolved.Fit.Batch != batch ||
		!strings.Contains(r.Resolved.Fit.String(), fmt.Sprintf("batch %d: it takes", batch)) {
		t.Fatalf("batch %d, %v", batch, r.Resolved.Fit)
	}
	limit, other := dev.free-dev.spare, r.later(true)
	for n, fits := range map[int]bool{batch: true, batch + 8: false} {
		bytes, err := r.Net.BatchBytes(n)
		if err != nil || (bytes+other <= limit) != fits {
			t.Errorf("batch %d takes %d + %d of %d bytes, %v", n, bytes, other, limit, err)
		}
	}
	if window := r.later(true) - r.later(false); window != 4*int64(r.Net.Params.Len())*3 {
		t.Errorf("the snapshots of a window of 2 take %d bytes", window)
	}
	if err := r.begin(); err != nil {
		t.Fatal(err)
	}
	stored, err := ReadSpec(c.Out)
	if err != nil || stored.Batch != batch {
		t.Errorf("config.json has batch %d, %v", stored.Batch, err)
	}
	r.Close()
	if again, err := Resume(c.Out, Deps{Device: cpuDevice(t, 1)}, nil); err != nil || again.Resolved.Batch != batch {
		t.Errorf("resumed: %v", err)
	} else if err := again.Close(); err != nil {
		t.Error(err)
	}
}

func TestAutoBatchOnHost(t *testing.T) {
	c := tiny("")
	c.Batch = AutoBatch
	r, err := New(c, Deps{Device: cpuDevice(t, 1)})
	if err != nil {
		if !strings.Contains(err.Error(), "choose a batch") { // the system does not report free memory
			t.Fatal(err)
		}
		return
	}
	defer r.Close()
	if r.Resolved.Batch != 256 || !strings.Contains(r.Resolved.Fit.String(), "no faster with more") {
		t.Errorf("batch %d, %v", r.Resolved.Batch, r.Resolved.Fit)
	}
}

func TestTooLittleMemory(t *testing.T) {
	host := cpuDevice(t, 1)
	c := tiny("")
	for _, s := range []struct {
		free  int64
		batch int
		want  []string
	}{
		{12 << 20, 8000, []string{"lenet at batch 8000 takes ", "of device card, and 12.6 MB are free: batch ", " fits"}},
		{600_000, 8, []string{"lenet at batch 8 takes", "no batch fits"}},
		{600_000, AutoBatch, []string{"lenet at batch 1 takes", "no batch fits"}},
		{100_000, 8, []string{"lenet, its weights and their gradients alone, takes", "no batch fits"}},
	} {
		c.Batch = s.batch
		r, err := New(c, Deps{Device: &card{Device: host, free: s.free}})
		if err == nil {
			t.Errorf("batch %d in %d bytes: no error", s.batch, s.free)
			r.Close()
			continue
		}
		var m *network.MemoryError
		if !errors.As(err, &m) {
			t.Errorf("%v", err)
			continue
		}
		for _, w := range s.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%v: no %q", err, w)
			}
		}
		if m.Fits > 0 {
			c.Batch = m.Fits
			newRun(t, c, &card{Device: host, free: s.free})
		}
	}
	broken := errors.New("card lost")
	c.Batch = 8
	if _, err := New(c, Deps{Device: &card{Device: host, err: broken}}); !errors.Is(err, broken) {
		t.Errorf("a card that does not answer: %v", err)
	}
}

// TestLoadersMemory: prefetched batches count as device memory if the device uses the host's, else separately.
func TestLoadersMemory(t *testing.T) {
	host := cpuDevice(t, 1)
	c := tiny("")
	r := newRun(t, c, host)
	want := (3 + 3 + 2) * int64(c.Batch) * (28*28 + 40) // of training, statistics, and two of validation
	if n, err := r.in.memory(c.Batch, 1); err != nil || n != want {
		t.Errorf("on the host %d bytes, want %d, %v", n, want, err)
	}
	own := newRun(t, c, &card{Device: host, free: 1 << 30})
	if n, err := own.in.memory(c.Batch, want); err != nil || n != 0 {
		t.Errorf("%d bytes beside a card, %v", n, err)
	}
	if _, err := own.in.memory(c.Batch, 0); err != nil {
		t.Errorf("where nobody knows: %v", err)
	}
	if _, err := own.in.memory(c.Batch, want/2); err == nil ||
		!strings.Contains(err.Error(), fmt.Sprintf("batch %d fits", int(float64(c.Batch)*.45))) {
		t.Errorf("in half of that: %v", err)
	}
}

// scarce is a device that runs out of memory after some allocations.
type scarce struct {
	device.Device
	left int
}

type noMemory struct{ error }

func (noMemory) OutOfMemory() bool { return true }

func (d *scarce) NewVector(n int) (device.Vector, error) {
	if d.left--; d.left < 0 {
		return nil, noMemory{errors.New("out of memory")}
	}
	return d.Device.NewVector(n)
}

func TestOutOfMemory(t *testing.T) {
	host := cpuDevice(t, 1)
	for left := range 3 { // LeNet's weights, gradients, momentum
		if _, err := New(tiny(""), Deps{Device: &scarce{host, left}}); err == nil ||
			!strings.Contains(err.Error(), "the weights of lenet, their gradients and the state of sgd: out of "+
				"memory: no batch fits") {
			t.Errorf("after %d vectors: %v", left, err)
		}
	}
	c := tiny(t.TempDir())
	r := newRun(t, c, &scarce{host, 3}) // the checkpoint of the first snapshot needs one more
	err := r.Train(t.Context())
	var f *FailedError
	if !errors.As(err, &f) || f.Epoch != 3 || f.Step != 7 || f.Checkpoint == "" ||
		!strings.Contains(err.Error(), "epoch 3, step 7: writing the checkpoint: ") ||
		!strings.Contains(err.Error(), "a smaller batch needs less; the state saved last is in "+f.Checkpoint) {
		t.Fatalf("%v", err)
	}
	r.Close()
	again, err := Resume(c.Out, Deps{Device: host}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if err := again.Train(t.Context()); err != nil {
		t.Error(err)
	}
}
