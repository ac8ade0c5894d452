//go:build amd64 && !purego

package simd

import (
	"os"
	"strings"
	"testing"
)

// AVX512_BF16 is slow on Intel's processors from Sapphire Rapids on, also where a hypervisor hides AMX.
func TestSlowBFloat16(t *testing.T) {
	for _, c := range []struct {
		name                string
		intel, amx, avxVNNI bool
		want                bool
	}{
		{"Zen 4", false, false, false, false},
		{"Zen 5", false, false, true, false},
		{"Cooper Lake", true, false, false, false},
		{"Sapphire Rapids", true, true, true, true},
		{"Emerald Rapids without AMX", true, false, true, true},
		{"Granite Rapids without AVX_VNNI", true, true, false, true},
	} {
		if got := slowBFloat16(c.intel, c.amx, c.avxVNNI); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		t.Skip(err)
	}
	if want := strings.Contains(string(info), "GenuineIntel"); intel() != want {
		t.Errorf("intel() = %v, want %v", intel(), want)
	}
}
