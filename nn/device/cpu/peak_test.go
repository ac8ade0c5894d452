package cpu

import (
	"testing"
	"time"

	"onlinerna/internal/simd"
)

func TestPeakOfBFloat16(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		d, err := New(Options{Threads: 2, BFloat16: true})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		want := simd.Current().String()
		if simd.BFloat16() {
			want = "avx512bf16"
		}
		if d.Level() != want || d.Precision() != "bfloat16" {
			t.Errorf("level %s, precision %s", d.Level(), d.Precision())
		}
		if p := d.Peak(time.Millisecond); p > 0 != (simd.Current() > simd.Go) {
			t.Errorf("peak of %g operations a second", p)
		}
	})
}

func TestPeak(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		d := open(t, 2)
		if d.Threads() != 2 || d.Level() != simd.Current().String() {
			t.Errorf("%d threads at level %s", d.Threads(), d.Level())
		}
		switch p := d.Peak(time.Millisecond); {
		case simd.Current() == simd.Go && p != 0:
			t.Errorf("plain Go has a peak of %g", p)
		case simd.Current() > simd.Go && p <= 0:
			t.Errorf("peak of %g operations a second", p)
		}
	})
}
