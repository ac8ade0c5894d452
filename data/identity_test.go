package data

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"onlinerna/data/internal/datatest"
)

// Sets in another place are the same; a set that was edited is not.
func TestIdentity(t *testing.T) {
	make := func(change func(dir string)) Identity {
		dir := t.TempDir()
		for _, name := range []string{"train/a/1.jpg", "train/a/2.jpg", "train/b/3.jpg", "train/b/4.jpg"} {
			datatest.Write(t, dir, name, datatest.JPEG(t, 20, 20, int(name[8])))
		}
		if change != nil {
			change(dir)
		}
		ds, _, err := Open(dir, Options{ValSplit: .5})
		if err != nil {
			t.Fatal(err)
		}
		all := ds.(*subset).Dataset
		return IdentityOf(all)
	}
	whole := make(nil)
	if got := make(nil).Differ(whole); got != "" || whole.Images != 4 || whole.Sizes == "" || whole.Pixels == "" {
		t.Errorf("the same set differs in %q: %+v", got, whole)
	}
	move := func(from, to string) func(dir string) {
		return func(dir string) {
			if err := os.Rename(filepath.Join(dir, "train", from), filepath.Join(dir, "train", to)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, c := range map[string]struct {
		change func(dir string)
		want   string
	}{
		"renamed":   {move("a/1.jpg", "a/1b.jpg"), "the names and order"},
		"relabeled": {move("a/2.jpg", "b/2.jpg"), "the labels"},
		"class":     {move("a", "c"), "the classes"},
		"added": {func(dir string) { datatest.Write(t, dir, "train/a/5.jpg", datatest.JPEG(t, 20, 20, 9)) },
			"the number of images, 5 and 4"},
		"edited": {func(dir string) {
			datatest.Write(t, dir, "train/a/1.jpg", append(datatest.JPEG(t, 20, 20, 9), 0))
		}, "the sizes of the files"},
		"pixels": {func(dir string) {
			b := datatest.JPEG(t, 20, 20, '1')
			b[len(b)-3] ^= 1
			datatest.Write(t, dir, "train/a/1.jpg", b)
		}, "the pixels"},
	} {
		if got := make(c.change).Differ(whole); !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
