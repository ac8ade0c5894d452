package train

import (
	"strings"
	"testing"
)

// TestSets rejects sets that cannot be training sets.
func TestSets(t *testing.T) {
	set := func(n, classes, label int) *listed { return &listed{n, classes, label} }
	for _, c := range []struct {
		config Spec
		given  Deps
		want   string
	}{
		{Spec{}, Deps{Val: set(2, 2, 0)}, "without training images"},
		{Spec{}, Deps{Train: set(2, 2, 2)}, "has the label 2: there are 2 classes"},
		{Spec{}, Deps{Train: set(0, 2, 0)}, "no images"},
		{Spec{}, Deps{Train: set(2, 2, 0), Val: set(2, 3, 0)}, "other classes"},
		{Spec{ValData: "x"}, Deps{Train: set(2, 2, 0)}, "Deps.Val"},
	} {
		c.given.Device = cpuDevice(t, 1)
		if r, err := New(c.config, c.given); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
			if r != nil {
				r.Close()
			}
		}
	}
}
