//go:build gpu && cgo

package driver_test

import (
	"strings"
	"testing"
)

func TestBandwidth(t *testing.T) {
	c := open(t)
	if v, err := c.Bandwidth(1 << 20); err != nil || v <= 0 {
		t.Errorf("%g bytes a second, %v", v, err)
	}
	if _, err := c.Bandwidth(1 << 50); err == nil || !strings.Contains(err.Error(), "measuring the bandwidth") {
		t.Errorf("more than the memory: %v", err)
	}
}
