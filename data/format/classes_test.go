package format

import (
	"testing"

	"onlinerna/data/internal/datatest"
)

func TestCounted(t *testing.T) {
	many := make([]int32, 70_000)
	many[9] = 69_999
	for _, labels := range [][]int32{{0}, {1, freeClasses - 1}, many} {
		names, err := counted(labels)
		want := 1
		for _, l := range labels {
			want = max(want, int(l)+1)
		}
		if err != nil || len(names) != want {
			t.Errorf("%d labels: %d names, want %d (%v)", len(labels), len(names), want, err)
		}
	}
	many[9] = 70_000
	for _, labels := range [][]int32{{freeClasses}, many} {
		_, err := counted(labels)
		datatest.WantError(t, err, "among", "more than 65536 classes", "classes.txt")
	}
}
