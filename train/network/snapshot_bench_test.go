package network_test

import (
	"slices"
	"testing"
	"time"

	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu"
	"onlinerna/rna"
)

// copied is a vector of a device that hides its memory.
type copied struct{ device.Vector }

// evict clears the caches as an epoch of training does.
func evict(b []byte) {
	for i := 0; i < len(b); i += 64 {
		b[i]++
	}
}

// BenchmarkSnapshot measures a snapshot of weights as large as ResNet-50's with its row of the Gram matrix, and an
// extrapolation into the weights: on a device in the host's memory, and on one that copies elements through a staging
// buffer.
func BenchmarkSnapshot(b *testing.B) {
	const dim, window = 25_557_032, 5
	dev, err := cpu.New(cpu.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer dev.Close()
	space, err := rna.NewHost32(dim, 0)
	if err != nil {
		b.Fatal(err)
	}
	w, err := rna.NewWindow(space, window)
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	v, err := dev.NewVector(dim)
	if err != nil {
		b.Fatal(err)
	}
	defer v.Free()
	x := v.(device.Elements[float32]).Elements()
	push := func(p rna.Point) {
		for i := 0; i < dim; i += 4096 {
			x[i]++
		}
		if err := w.Push(p); err != nil {
			b.Fatal(err)
		}
	}
	for i := range dim {
		x[i] = float32(i*37%1001) / 1001
	}
	for range window + 1 {
		push(v)
	}
	sides := []struct {
		name  string
		point rna.Point
	}{{"memory", v}, {"copied", copied{v}}}
	other := make([]byte, 1<<30)
	took := map[string][]time.Duration{}
	for b.Loop() { // alternates the cases, since the machine's load varies
		for _, side := range sides {
			evict(other)
			start := time.Now()
			push(side.point)
			took["push/"+side.name] = append(took["push/"+side.name], time.Since(start))
			evict(other)
			start = time.Now()
			if err := w.Combine(side.point, []float64{-.25, .5, .75}, 1); err != nil {
				b.Fatal(err)
			}
			took["combine/"+side.name] = append(took["combine/"+side.name], time.Since(start))
		}
	}
	for name, t := range took {
		slices.Sort(t)
		b.ReportMetric(t[len(t)/2].Seconds()*1e3, name+"-ms")
		b.ReportMetric(t[0].Seconds()*1e3, "best-"+name+"-ms")
	}
}
