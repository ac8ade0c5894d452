package parallel

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
)

func TestCapacities(t *testing.T) {
	folder := t.TempDir()
	for cpu, capacity := range []int{446, 1024} {
		at := filepath.Join(folder, fmt.Sprintf("cpu%d", cpu))
		if err := os.Mkdir(at, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(at, "cpu_capacity"), fmt.Appendln(nil, capacity), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		allowed []int
		want    []int
	}{{[]int{1}, []int{1024}}, {[]int{0, 1}, []int{446, 1024}}} {
		if len(c.allowed) > runtime.NumCPU() {
			continue
		}
		got := capacities(folder, func(cpu int) bool { return slices.Contains(c.allowed, cpu) })
		if !slices.Equal(got, c.want) {
			t.Errorf("CPUs %v: %v, want %v", c.allowed, got, c.want)
		}
	}
	if got := capacities(folder, func(cpu int) bool { return cpu == 2 }); got != nil {
		t.Errorf("a CPU that does not say: %v", got)
	}
}
