//go:build gpu && cgo

package launches_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"onlinerna/cuda/check/gputest"
	"onlinerna/cuda/check/launches"
	"onlinerna/cuda/check/sim"
	"onlinerna/cuda/driver"
	"onlinerna/cuda/kernels"
	"onlinerna/cuda/nvrtc"
)

// The stand-in records a launch with all memory that its parameters reach, also through a table of addresses, before
// and after the launch. It records no similar launch again, but one of another kind.
func TestRecord(t *testing.T) {
	gputest.Need(t)
	if !sim.Active() {
		t.Skip("the stand-in records launches")
	}
	folder := t.TempDir()
	t.Setenv("RNA_SIM_RECORD", folder)
	c := gputest.Open(t)
	m, err := nvrtc.Compile(c, "rna.cu", kernels.RNA())
	gputest.Check(t, err)
	defer m.Close()
	k, err := m.Kernel("rna_combine")
	gputest.Check(t, err)
	s := c.Stream()
	const n = 24
	alloc := func(bytes int64) *driver.Memory {
		a, err := c.Alloc(bytes)
		gputest.Check(t, err)
		t.Cleanup(func() { gputest.Check(t, a.Close()) })
		return a
	}
	vector, table, out := alloc(4*n), alloc(16), alloc(4*n)
	values := make([]byte, 4*n)
	for i := range n {
		binary.LittleEndian.PutUint32(values[4*i:], math.Float32bits(float32(i)))
	}
	gputest.Check(t, s.CopyIn(vector.All(), values))
	var address uintptr
	gputest.Check(t, s.Do(func() (err error) { address, err = vector.All().Address(c); return err }))
	term := binary.LittleEndian.AppendUint64(nil, uint64(address))
	term = binary.LittleEndian.AppendUint64(term, math.Float64bits(3))
	gputest.Check(t, s.CopyIn(table.All(), term))
	for _, from := range []int64{1, 3, 8} {
		gputest.Check(t, s.Launch(k, driver.Dim{X: 1}, driver.Dim{X: 32}, 0, table.All(), int32(1), from, int64(n-7),
			out.All().Written()))
	}
	gputest.Check(t, c.Synchronize())

	all, sources, err := launches.Read(folder)
	gputest.Check(t, err)
	if len(all) != 2 || len(sources) != 1 {
		t.Fatalf("%d launches of %d sources, want 2 of 1", len(all), len(sources))
	}
	l := all[0]
	from := int(binary.LittleEndian.Uint64(l.Parameters[2]))
	if l.Kernel != "rna_combine" || l.Types != "p---f" || l.Threads != [3]int{32, 1, 1} ||
		sources[l.Source].Text != kernels.RNA() || len(l.Before) != 3 {
		t.Fatalf("%s, %s, %v, %d blocks of memory", l.Kernel, l.Types, l.Threads, len(l.Before))
	}
	found := false
	for i, b := range l.Before {
		switch {
		case b.At == uint64(address):
			if found = true; !bytes.HasPrefix(b.Data, values) || !launches.Same(l.Before[i:i+1], l.After[i:i+1]) {
				t.Errorf("the vector is %x before and %x after", b.Data, l.After[i].Data)
			}
		case b.At == binary.LittleEndian.Uint64(l.Parameters[4]):
			for j := range n - 7 {
				if got, want := math.Float32frombits(binary.LittleEndian.Uint32(l.After[i].Data[4*j:])),
					float32(3*(j+from)); got != want {
					t.Errorf("element %d is %g after, want %g", j, got, want)
				}
			}
		}
	}
	if !found {
		t.Error("the vector that the table leads to is not recorded")
	}
}
