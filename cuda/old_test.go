//go:build gpu && cgo

package cuda

import (
	"bytes"
	"strings"
	"testing"

	"onlinerna/cuda/lazy"
)

// A cuDNN that is too old is named with what to install, and RNA does without it.
func TestFaultOfOldDNN(t *testing.T) {
	fault(t, "")
	needDNN(t)
	t.Setenv("RNA_SIM_CUDNN", "7")
	_, err := openNet(NetOptions{})()
	for _, want := range []string{"cuDNN 7.6.5 is too old, needed is 8.1.0 or newer: " + lazy.CuDNN.File(), "pip install"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: no %q", err, want)
		}
	}
	r := Look()
	var b bytes.Buffer
	check(t, r.Print(&b))
	for _, want := range []string{"cuDNN          7.6.5, cannot be used; RNA does without, nets need it", "cuDNN 7.6.5 is too old", "RNA can run on the GPU"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, &b)
		}
	}
	if r.Net() >= 0 || !r.Usable() {
		t.Errorf("nets on GPU %d, RNA on one: %v", r.Net(), r.Usable())
	}
}
