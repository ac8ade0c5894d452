//go:build gpu && cgo

package cuda

import (
	"strings"
	"testing"

	"onlinerna/nn/device"
)

// The limits are positive, the net's own precision comes first, and what measuring took is given back.
func TestNetLimits(t *testing.T) {
	needDNN(t)
	dev, err := openNet(NetOptions{})()
	check(t, err)
	defer func() { check(t, dev.Close()) }()
	d := dev.(*Net)
	before, err := d.c.Stats()
	check(t, err)
	l, err := dev.(device.Gauge).Limits()
	check(t, err)
	if len(l.Products) == 0 || l.Products[0].Name != "float32" || l.Products[0].Speed <= 0 || !strings.Contains(l.Products[0].How, "cuBLAS") {
		t.Errorf("products %+v", l.Products)
	}
	if l.Bandwidth.Speed <= 0 || !strings.HasPrefix(l.Bandwidth.How, "copy of ") {
		t.Errorf("bandwidth %+v", l.Bandwidth)
	}
	if after, err := d.c.Stats(); err != nil || after.Used != before.Used {
		t.Errorf("%d bytes were in use, then %d, %v", before.Used, after.Used, err)
	}
	t.Logf("%+v", l)
}

func TestNetRoom(t *testing.T) {
	needDNN(t)
	dev, err := openNet(NetOptions{})()
	check(t, err)
	defer func() { check(t, dev.Close()) }()
	d := dev.(*Net)
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
	one, two := d.SpaceBytes(1<<20, 10), d.SpaceBytes(1<<20, 11)
	if two-one < 4<<20 || one < 10*4<<20+DefaultReserve {
		t.Errorf("a space takes %d bytes, with one more vector %d", one, two)
	}
	if peak, err := d.PeakMemory(); err != nil || peak < 4<<20 {
		t.Errorf("peak of %d bytes, %v", peak, err)
	}
	if d.Card() == "" {
		t.Error("the card has no name")
	}
}
