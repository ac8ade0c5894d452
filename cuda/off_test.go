//go:build !gpu

package cuda

import (
	"errors"
	"strings"
	"testing"
)

func TestNotBuilt(t *testing.T) {
	if _, err := Devices(); !errors.Is(err, ErrNotBuilt) || !strings.Contains(err.Error(), "make gpu") {
		t.Errorf("Devices: %v", err)
	}
	if c, err := Open(0, Options{}); !errors.Is(err, ErrNotBuilt) || c != nil {
		t.Errorf("Open: %v", err)
	}
	if r := Look(); r.Built || r.Usable() || len(r.GPUs) != 0 {
		t.Errorf("%+v", r)
	}
}
