package train

import (
	"path/filepath"
	"testing"
)

// TestReestimated compares the BatchNorm statistics of rna.safetensors with the mean over batches computed one by one.
func TestReestimated(t *testing.T) {
	c := tinyColour(filepath.Join(t.TempDir(), "run"), pictures(t, 20, 6, 16))
	c.RNA.Batches = 3 // of 8, 8 and 4 images
	r := trained(t, c, cpuDevice(t, 2))
	path := filepath.Join(c.Out, "rna.safetensors")
	if _, err := r.Net.LoadWeights(path); err != nil {
		t.Fatal(err)
	}
	got := numbers(t, r.Net.Stats)
	want := make([]float64, r.Net.Stats.Len())
	images, before := 0, r.Net.StatsBatches
	for b, err := range r.in.stats.Epoch(t.Context(), c.Epochs, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Net.Stats.Fill(1e6); err != nil { // must not matter
			t.Fatal(err)
		}
		if err := r.Net.UpdateStats(b, 1); err != nil {
			t.Fatal(err)
		}
		images += b.N
		for j, v := range numbers(t, r.Net.Stats) {
			want[j] += v * float64(b.N)
		}
	}
	if images != 20 {
		t.Fatalf("%d images", images)
	}
	for j := range want {
		want[j] /= 20
	}
	near(t, "statistics", got, want, 1e-6)
	if r.Net.StatsBatches != before {
		t.Error("re-estimating counts as training")
	}
	last := r.History[len(r.History)-1]
	if last.SGDStats == nil || *last.SGDStats == *last.SGD {
		t.Errorf("SGD with re-estimated statistics: %+v", last.SGDStats)
	}
}
