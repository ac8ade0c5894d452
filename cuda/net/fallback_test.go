//go:build gpu && cgo

package net

import (
	"errors"
	"strings"
	"testing"

	"onlinerna/cuda/check/gputest"
	"onlinerna/cuda/check/sim"
	"onlinerna/cuda/dnn"
	"onlinerna/cuda/driver"
	"onlinerna/cuda/number"
)

// If no plan of the precision runs, TensorFloat-32 is tried, then float32, each with a warning, and
// results are no less exact. If nothing runs, the error lists the attempts.
func TestFaultOfPrecisions(t *testing.T) {
	gputest.NeedDNN(t)
	fault(t, "")
	exact, _ := results(t, Options{Deterministic: true})
	const all = "cudnnBackendExecute@0=5000"
	usual := map[number.Precision][][]float64{}
	for _, p := range []number.Precision{number.TF32, number.BFloat16, number.Float16} {
		usual[p], _ = results(t, Options{Precision: p, Deterministic: true})
	}
	for _, test := range []struct {
		name   string
		p      number.Precision
		faults string
		until  string // the precision in which convolutions run in the end
		links  []string
		want   []string // parts of the error
		is     error
	}{
		{name: "the next plan", p: number.BFloat16, faults: "cudnnBackendExecute@1=5000"},
		{name: "TensorFloat-32 in place of bfloat16", p: number.BFloat16, faults: all, until: "tf32",
			links: []string{"tf32"}},
		{name: "float32 in place of bfloat16", p: number.BFloat16, faults: all, until: "float32",
			links: []string{"tf32", "float32"}},
		{name: "float32 in place of float16", p: number.Float16, faults: all, until: "float32",
			links: []string{"tf32", "float32"}},
		{name: "float32 in place of TensorFloat-32", p: number.TF32, faults: all, until: "float32",
			links: []string{"float32"}},
		{name: "nothing runs", p: number.BFloat16, faults: all, links: []string{"tf32", "float32"},
			is:   dnn.ErrNoPlan,
			want: []string{" in bfloat16, ", " in tf32, ", " in float32, ", "CUDNN_STATUS_EXECUTION_FAILED"}},
		{name: "no memory", p: number.BFloat16, faults: "cudnnBackendExecute@0=4004", is: driver.ErrOutOfMemory,
			want: []string{"DEVICE_ALLOCATION_FAILED"}},
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
			got, _, err := tryResults(t, o)
			check(t, sim.Fault(""))
			if len(said) != len(test.links) {
				t.Errorf("warnings %q, want %d", said, len(test.links))
			}
			for i, link := range test.links {
				if i < len(said) && (!strings.Contains(said[i], "runs in "+link+", which is slower, because ") ||
					!strings.Contains(said[i], "CUDNN_STATUS_EXECUTION_FAILED")) {
					t.Errorf("warning %q, want that it runs in %s, and why", said[i], link)
				}
			}
			if !errors.Is(err, test.is) {
				t.Fatalf("%v, want %v", err, test.is)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v: no %q", err, want)
				}
			}
			for i, name := range parts[:len(got)] {
				if off, most := offBy(got[i], exact[i]), offBy(usual[test.p][i], exact[i]); !(off <= 1.5*most+1e-3) ||
					!(off < .3) {
					t.Errorf("%s: off by %.2g, without the faults by %.2g", name, off, most)
				}
			}
		})
	}
}
