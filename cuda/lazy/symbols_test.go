//go:build gpu && cgo

package lazy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// newer are the functions that cu's names refer to when compiled with NVIDIA's own headers for CUDA 13.
var newer = []string{
	"cuDeviceGetUuid_v2", "cuEventElapsedTime_v2", "cuGraphAddKernelNode", "cuStreamWaitValue32",
	"cuStreamWriteValue32",
}

// Trampolines exist exactly for the functions that gorgonia.org/cu or the packages here reference: names in their
// sources that the headers declare.
func TestSymbols(t *testing.T) {
	read := func(pattern string) (all []string) {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, f := range files {
			if strings.HasSuffix(f, "_test.go") {
				continue
			}
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, string(b))
		}
		return all
	}
	headers := strings.Join(read("../include/*.h"), "\n")
	renamed, functions := map[string]string{}, map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^#define (\w+) (\w+)$`).FindAllStringSubmatch(headers, -1) {
		renamed[m[1]] = m[2]
	}
	for _, m := range regexp.MustCompile(`(?m)^(?:const )?\w+ \*?((?:cu|nvrtc|nccl|nvml)\w+)\(`).
		FindAllStringSubmatch(headers, -1) {
		functions[m[1]] = true
	}
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "gorgonia.org/cu").Output()
	if err != nil {
		t.Fatal(err)
	}
	cu := strings.TrimSpace(string(out))
	var sources []string
	for _, pattern := range []string{cu + "/*.go", cu + "/*.c", cu + "/*.h", "../driver/*.go", "../blas/*.go",
		"../dnn/*.go", "../nvrtc/*.go", "../nccl/*.go", "../nvml/*.go"} {
		sources = append(sources, read(pattern)...)
	}
	used := map[string]bool{"cuInit": false} // defined by resolve.c itself
	quoted := regexp.MustCompile(`"[^"\n]*"`)
	for _, s := range sources {
		for _, name := range regexp.MustCompile(`\b(?:cu[A-Z]|cublas|cudnn|nvrtc|nccl|nvml)\w+`).
			FindAllString(quoted.ReplaceAllString(s, ""), -1) {
			if to, ok := renamed[name]; ok {
				name = to
			}
			if functions[name] {
				used[name] = true
			}
		}
	}
	used["cuInit"] = false
	for _, name := range newer {
		used[name] = true
	}
	have := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^F\(\w+, (\w+)\)`).FindAllStringSubmatch(strings.Join(read("symbols.h"),
		""), -1) {
		have[m[1]] = true
		if !used[m[1]] {
			t.Errorf("symbols.h has %s, which nobody references", m[1])
		}
	}
	var missing []string
	for name, is := range used {
		if is && !have[name] {
			missing = append(missing, name)
		}
	}
	if slices.Sort(missing); len(missing) > 0 || len(have) < 150 {
		t.Errorf("symbols.h lacks %q, and has %d", missing, len(have))
	}
}
