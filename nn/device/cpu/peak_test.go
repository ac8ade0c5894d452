package cpu

import (
	"testing"
	"time"

	"onlinerna/internal/level"
)

func TestPeak(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		d := open(t, 2)
		if d.Threads() != 2 || d.Level() != level.Current().String() {
			t.Errorf("%d threads at level %s", d.Threads(), d.Level())
		}
		switch p := d.Peak(time.Millisecond); {
		case level.Current() == level.Go && p != 0:
			t.Errorf("plain Go has a peak of %g", p)
		case level.Current() > level.Go && p <= 0:
			t.Errorf("peak of %g operations a second", p)
		}
	})
}
