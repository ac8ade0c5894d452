package train

import (
	"strings"
	"testing"
)

// TestSets refuses sets that are no training set.
func TestSets(t *testing.T) {
	set := func(n, classes, label int) *listed { return &listed{n, classes, label} }
	for _, c := range []struct {
		config Config
		want   string
	}{
		{Config{Val: set(2, 2, 0)}, "without training images"},
		{Config{Train: set(2, 2, 2)}, "has the label 2: there are 2 classes"},
		{Config{Train: set(0, 2, 0)}, "no images"},
		{Config{Train: set(2, 2, 0), Val: set(2, 3, 0)}, "other classes"},
		{Config{Train: set(2, 2, 0), ValData: "x"}, "Config.Val"},
	} {
		if r, err := New(c.config, cpuDevice(t, 1)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
			if r != nil {
				r.Close()
			}
		}
	}
}
