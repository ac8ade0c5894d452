//go:build gpu && cgo

package net

import (
	"math"
	"strings"
	"testing"

	"onlinerna/cuda/internal/gputest"
	"onlinerna/cuda/number"
	"onlinerna/cuda/sim"
)

// legacy are cuDNN's functions for convolutions that came before its graphs.
var legacy = []string{"cudnnConvolutionForward", "cudnnConvolutionBackwardData", "cudnnConvolutionBackwardFilter"}

// Where neither plans nor algorithms of the precision run, TensorFloat-32 does, then float32, each with a line that says so, and results
// are no less exact. Where nothing runs the error says what was tried.
func TestFaultOfPrecisions(t *testing.T) {
	gputest.NeedDNN(t)
	fault(t, "")
	exact, _ := results(t, Options{Deterministic: true})
	all := "cudnnBackendExecute@0=5000"
	for _, f := range legacy {
		all += ";" + f + "@0=5000"
	}
	for _, test := range []struct {
		name   string
		p      number.Precision
		faults string
		until  string // the precision in which convolutions run again
		links  []string
		off    float64
	}{
		{"the next plan", number.BFloat16, "cudnnBackendExecute@1=5000", "", nil, .05},
		{"algorithms", number.BFloat16, "cudnnBackendExecute@0=5000", "", nil, .05},
		{"TensorFloat-32 in place of bfloat16", number.BFloat16, all, "tf32", []string{"tf32"}, .05},
		{"float32 in place of bfloat16", number.BFloat16, all, "float32", []string{"tf32", "float32"}, .05},
		{"float32 in place of float16", number.Float16, all, "float32", []string{"tf32", "float32"}, .05},
		{"float32 in place of TensorFloat-32", number.TF32, all, "float32", []string{"float32"}, .01},
	} {
		t.Run(test.name, func(t *testing.T) {
			check(t, sim.Fault(test.faults))
			var said []string
			o := Options{Precision: test.p, Deterministic: true, Warn: func(line string) {
				said = append(said, line)
				if test.until != "" && strings.Contains(line, "runs in "+test.until) {
					check(t, sim.Fault(""))
				} else {
					check(t, sim.Fault(test.faults))
				}
			}}
			got, _ := results(t, o)
			check(t, sim.Fault(""))
			if len(said) != len(test.links) {
				t.Errorf("warnings %q, want %d", said, len(test.links))
			}
			for i, link := range test.links {
				if i < len(said) && (!strings.Contains(said[i], "runs in "+link+", which is slower: ") || !strings.Contains(said[i], "CUDNN_STATUS_EXECUTION_FAILED")) {
					t.Errorf("warning %q, want that it runs in %s, and why", said[i], link)
				}
			}
			if off := math.Abs(got[0][0] - exact[0][0]); !(off < test.off) {
				t.Errorf("loss %v, want %v", got[0][0], exact[0][0])
			}
		})
	}
}
