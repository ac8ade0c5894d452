//go:build gpu && cgo

package net

import (
	"strings"
	"testing"

	"onlinerna/nn/device"
)

func TestNetClock(t *testing.T) {
	d := opened(t, Options{})
	c := d.(device.Clock)
	v, err := d.NewVector(1 << 20)
	check(t, err)
	defer v.Free()
	if _, err := c.Between(0, 1); err == nil || !strings.Contains(err.Error(), "only 0 marks exist") {
		t.Errorf("marks that were not made: %v", err)
	}
	check(t, c.Mark(0))
	check(t, v.Fill(1))
	check(t, c.Mark(1))
	check(t, v.AddScaled(2, v))
	check(t, c.Mark(2))
	one, err := c.Between(0, 1)
	check(t, err)
	two, err := c.Between(1, 2)
	check(t, err)
	both, err := c.Between(0, 2)
	check(t, err)
	if one <= 0 || two <= 0 || (both-one-two).Abs() > both/100 {
		t.Errorf("%v and %v, together %v", one, two, both)
	}
}
