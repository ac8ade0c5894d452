package train

import (
	"os"
	"path/filepath"
	"testing"

	"onlinerna/train/hook"
)

// FuzzReadHistory reads arbitrary metrics.
func FuzzReadHistory(f *testing.F) {
	f.Add([]byte(`{"kind":"step","epoch":1,"step":1,"loss":2.3}` + "\n" +
		`{"kind":"epoch","epoch":1,"step":1,"train":{"loss":1,"images":3},"rna":{"status":"ok","c":[0.5,0.5]}}` + "\n"))
	f.Add([]byte("{\n"))
	f.Add([]byte(`{"kind":"epoch","epoch":-1}`))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(filepath.Join(dir, metricsName), b, 0o600); err != nil {
			t.Fatal(err)
		}
		list, err := ReadHistory(dir)
		if err != nil {
			return
		}
		for _, r := range list {
			if r.Kind != "epoch" {
				t.Fatalf("a record of kind %q", r.Kind)
			}
			r.Ranking(hook.ByError)
		}
	})
}
