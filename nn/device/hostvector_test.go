package device_test

import (
	"testing"

	"onlinerna/nn/device"
	"onlinerna/rna"
)

var (
	_ rna.Float32Memory = (*device.HostVector[float32])(nil)
	_ rna.Float64Memory = (*device.HostVector[float64])(nil)
)

// A vector returns its elements in their own type only, and none out of range.
func TestHostVectorMemory(t *testing.T) {
	v, err := device.NewHostVector[float32](10)
	if err != nil {
		t.Fatal(err)
	}
	e := v.Float32s(2, 8)
	if len(e) != 8 || cap(e) != 8 || &e[0] != &v.Elements()[2] {
		t.Errorf("%d elements", len(e))
	}
	for _, r := range [][2]int{{-1, 2}, {3, 8}, {0, 11}, {5, -1}} {
		if e := v.Float32s(r[0], r[1]); e != nil {
			t.Errorf("elements %v: %v", r, e)
		}
	}
	if v.Float64s(0, 10) != nil {
		t.Error("float32 is float64")
	}
	w, err := device.NewHostVector[float64](10)
	if err != nil {
		t.Fatal(err)
	}
	if len(w.Float64s(0, 10)) != 10 || w.Float32s(0, 10) != nil {
		t.Error("float64 is not")
	}
}
