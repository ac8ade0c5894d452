//go:build gpu

package main

import (
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"onlinerna/cuda/check/sim"
)

// A profiler sees the parts of training in ranges: issued kernel by kernel, captured, and replayed.
func TestRangesOnGPU(t *testing.T) {
	needSim(t, 512)
	for name, test := range map[string]struct {
		environ []string
		want    []string // regular expressions, each of a range
		none    string   // of no range
	}{
		"captured": {nil, []string{
			`wait for images`, `step 1/training at batch 8/input to the device`,
			`step 1/training at batch 8/forward/conv1 conv2d.*`,
			`step 1/training at batch 8/backward/conv1 conv2d_grad_weight.*`,
			`step 1/training at batch 8/update`, `step 3/training at batch 8/graph capture/forward/conv1 conv2d.*`,
			`step 3/training at batch 8/graph launch`, `step 5/training at batch 8/graph launch`,
			`evaluation/evaluation at batch 8/forward/conv1 conv2d.*`, `hook rna/RNA snapshot`, `hook rna/RNA Gram row`,
			`hook rna/RNA combination`, `hook rna/evaluation/evaluation at batch 8/.*`, `checkpoint`,
		}, `step [7-9]/.*/(forward|graph capture).*`},
		"eager": {[]string{"RNA_CUDA_EAGER=1"}, []string{
			`step 6/training at batch 8/forward/conv1 conv2d.*`, `step 6/training at batch 8/update`,
		}, `.*/graph .*`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "ranges")
			sim.Alone(t, dir, func(dir string) {
				mustRun(t, "train", "--device", "cuda", "--batch", "8", "--epochs", "3", "--limit-batches", "3", "--limit-val", "1",
					"--rna-start", "1", "--out", filepath.Join(dir, "run"))
			}, append(test.environ, sim.LogRanges(path)...)...)
			ranges, names, err := sim.Ranges(path)
			if err != nil {
				t.Fatal(err)
			}
			has := func(pattern string) bool {
				return slices.ContainsFunc(ranges, regexp.MustCompile("^"+pattern+"$").MatchString)
			}
			for _, pattern := range test.want {
				if !has(pattern) {
					t.Errorf("no range %s", pattern)
				}
			}
			if has(test.none) {
				t.Errorf("a range %s", test.none)
			}
			for _, name := range []string{"thread calls of GPU 0", "stream nets", "stream input", "stream RNA"} {
				if !slices.Contains(names, name) {
					t.Errorf("no %s among %q", name, names)
				}
			}
			if t.Failed() {
				t.Logf("%q", ranges)
			}
		})
	}
}
