package average

import (
	"testing"

	"onlinerna/rna"
)

// The statistics that are kept are those of the window's snapshots, however long the run is.
func TestStatisticsDoNotGrow(t *testing.T) {
	space, err := rna.NewHost64(1, 1)
	if err != nil {
		t.Fatal(err)
	}
	w, err := rna.NewWindow(space, 3)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	h := &RNA{window: w}
	for i := range 10 {
		h.keepStatistics([]float64{float64(i)})
		if want := min(i+1, 3); len(h.stats) != want || h.stats[0][0] != float64(i+1-want) {
			t.Errorf("after %d: %v", i+1, h.stats)
		}
	}
}
