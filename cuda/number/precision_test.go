package number

import (
	"testing"
)

func TestPrecisions(t *testing.T) {
	for p := Float32; p <= Float16; p++ {
		if q, err := ParsePrecision(p.String()); err != nil || q != p {
			t.Errorf("%v is %v, %v", p, q, err)
		}
	}
	for _, name := range []string{"", "float64", "Float32", "bf16"} {
		if _, err := ParsePrecision(name); err == nil {
			t.Errorf("precision %q is no error", name)
		}
	}
}
