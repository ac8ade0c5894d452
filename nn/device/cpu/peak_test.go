package cpu

import (
	"testing"
	"time"

	"onlinerna/internal/simd"
)

func TestPeakOfBFloat16(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		d, err := New(Options{Threads: 2, Level: at.String(), BFloat16: true})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		if d.Level() != at.String() || d.Precision() != "bfloat16" {
			t.Errorf("level %s, precision %s", d.Level(), d.Precision())
		}
		if p := d.Peak(time.Millisecond); p > 0 != (at.Vectors() > simd.Go) {
			t.Errorf("peak of %g operations a second", p)
		}
	})
}

func TestPeak(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		d := open(t, 2)
		if d.Threads() != 2 || d.Level() != at.Vectors().String() {
			t.Errorf("%d threads at level %s", d.Threads(), d.Level())
		}
		switch p := d.Peak(time.Millisecond); {
		case at.Vectors() == simd.Go && p != 0:
			t.Errorf("plain Go has a peak of %g", p)
		case at.Vectors() > simd.Go && p <= 0:
			t.Errorf("peak of %g operations a second", p)
		}
	})
}
