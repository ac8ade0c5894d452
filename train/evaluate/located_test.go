package evaluate

import (
	"os"
	"testing"

	"onlinerna/train"
	"onlinerna/train/network"
)

// A split's images are where the weights say, or where the run has found them since.
func TestLocated(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, dir := range []string{"work/photos", "work/moved", "work/run", "here"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ said, now, want string }{
		{"here", "moved", "here"},
		{"photos", "moved", "work/photos"},
		{"gone", "here", "here"},
		{"gone", "moved", "work/moved"},
		{"gone", "gone too", "gone"},
		{"", "", ""},
		{"glyphs", "glyphs", "glyphs"},
	} {
		r := Run{Dir: "work/run", Config: train.Spec{Out: "run", Data: c.now, ValData: c.now}}
		s := r.Located(network.Split{Data: c.said, ValData: c.said})
		for _, got := range []string{s.Data, s.ValData} {
			if want := c.want; got != want && !sameFile(got, want) {
				t.Errorf("%q, now %q: %q, want %q", c.said, c.now, got, want)
			}
		}
	}
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	y, err2 := os.Stat(b)
	return err == nil && err2 == nil && os.SameFile(x, y)
}
