//go:build !gpu

package cuda

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Each package imports those below it and no other of this module, under every build tag.
func TestRooms(t *testing.T) {
	libraries := []string{"driver", "internal/cache", "lazy", "number"}
	below := map[string][]string{
		"lazy":           {},
		"number":         {},
		"internal/cache": {"onlinerna/internal/files"},
		"check/ptx":      {},
		"kernels":        {"internal/cache", "onlinerna/nn/op/expr", "onlinerna/nn/op/update"},
		"nvtx":           {},
		"driver":         {"lazy", "nvtx"},
		"blas":           libraries,
		"dnn":            libraries,
		"nvrtc":          libraries,
		"nccl":           libraries,
		"nvml":           {"lazy"},
		"net": {"driver", "number", "lazy", "kernels", "blas", "dnn", "nvrtc", "nccl", "nvtx",
			"internal/cache", "onlinerna/nn/device", "onlinerna/nn/device/lower", "onlinerna/nn/op", "onlinerna/nn/op/expr",
			"onlinerna/nn/op/update"},
		"check/datasheet": {"lazy", "number", "onlinerna/nn/device"},
		"check/launches":  {"check/ptx"},
		"space":           {"driver", "kernels", "nvrtc", "onlinerna/rna"},
		".": {"driver", "number", "lazy", "blas", "dnn", "nvrtc", "nccl", "nvml", "net", "check/datasheet",
			"space", "internal/cache", "onlinerna/nn/device", "onlinerna/rna"},
	}
	for room, may := range below {
		files, err := filepath.Glob(filepath.Join(room, "*.go"))
		if err != nil || len(files) == 0 {
			t.Errorf("%s: %d files, %v", room, len(files), err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
			if err != nil {
				t.Fatal(err)
			}
			for _, i := range f.Imports {
				path, err := strconv.Unquote(i.Path.Value)
				if err != nil {
					t.Fatal(err)
				}
				if name, own := strings.CutPrefix(path, "onlinerna/"); own &&
					!slices.Contains(may, strings.TrimPrefix(name, "cuda/")) && !slices.Contains(may, path) {
					t.Errorf("%s imports %s, which is not below %s", file, path, room)
				}
			}
		}
	}
}
