package data

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"onlinerna/data/imaging"
	"onlinerna/data/internal/datatest"
)

// listed is a set of names and labels.
type listed struct {
	names  []string
	labels []int
	closed *int
}

func (d listed) Len() int          { return len(d.names) }
func (d listed) Classes() []string { return []string{"a", "b", "c"} }
func (d listed) Channels() int     { return 3 }
func (d listed) Label(i int) int   { return d.labels[i] }
func (d listed) Name(i int) string { return d.names[i] }
func (d listed) Close() error      { *d.closed++; return nil }
func (d listed) Read(int, Region, *Scratch) (*imaging.Image, error) {
	return nil, os.ErrNotExist
}

func TestSplitByClass(t *testing.T) {
	closed := 0
	set := func(root string, others bool) listed {
		d := listed{closed: &closed}
		for i := range 40 {
			d.names, d.labels = append(d.names, filepath.Join(root, "a", string(rune('A'+i))+".jpg")),
				append(d.labels, 0)
			if others {
				d.names, d.labels = append(d.names, filepath.Join(root, "b", string(rune('A'+i))+".jpg")),
					append(d.labels, 1)
			}
		}
		d.names, d.labels = append(d.names, filepath.Join(root, "c", "only.jpg")), append(d.labels, 2)
		return d
	}
	names := func(ds Dataset, label int) string {
		var list []string
		for i := range ds.Len() {
			if ds.Label(i) == label {
				list = append(list, filepath.Base(ds.Name(i)))
			}
		}
		return strings.Join(list, " ")
	}
	train, val, err := SplitByClass(set("x", true), 0.2)
	if err != nil {
		t.Fatal(err)
	}
	if got := ClassCounts(val); got[0] != 8 || got[1] != 8 || got[2] != 0 {
		t.Errorf("validation images by class %v", got)
	}
	if got := ClassCounts(train); got[0] != 32 || got[1] != 32 || got[2] != 1 {
		t.Errorf("training images by class %v", got)
	}
	for name := range strings.FieldsSeq(names(val, 0)) {
		if strings.Contains(" "+names(train, 0)+" ", " "+name+" ") {
			t.Errorf("%s is in both", name)
		}
	}
	_, moved, err := SplitByClass(set("elsewhere", false), 0.2)
	if err != nil || names(moved, 0) != names(val, 0) {
		t.Errorf("another folder without class b: %q, want %q, %v", names(moved, 0), names(val, 0), err)
	}
	if closeSet(val); closed != 0 {
		t.Error("the validation part closes the set")
	}
	if closeSet(train); closed != 1 {
		t.Error("the training part does not close the set")
	}
	alone, err := HeldByClass(set("x", true), 0.2)
	if err != nil || names(alone, 0) != names(val, 0) {
		t.Errorf("alone: %q, want %q, %v", names(alone, 0), names(val, 0), err)
	}
	if closeSet(alone); closed != 2 {
		t.Error("the validation part alone does not close the set")
	}
	for _, share := range []float64{0, 1, -0.5} {
		if _, _, err := SplitByClass(set("x", true), share); err == nil {
			t.Errorf("a share of %g is taken", share)
		}
	}
	one, err := Subset(set("x", true), []int{80})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := SplitByClass(one, 0.5); err == nil {
		t.Error("one image is split")
	}
}

func TestOpenPlainFolders(t *testing.T) {
	dir := t.TempDir()
	for _, class := range []string{"cat", "dog"} {
		for i := range 5 {
			datatest.Write(t, filepath.Join(dir, class), string(rune(97+i))+".jpg", datatest.JPEG(t, 8, 8, i))
		}
	}
	if _, _, err := Open(dir, Options{}); err == nil || !strings.Contains(err.Error(), "--val-split 0.2") {
		t.Errorf("without a split: %v", err)
	}
	train, val, err := Open(dir, Options{ValSplit: 0.2})
	if err != nil || train.Len() != 8 || val.Len() != 2 {
		t.Fatalf("%v %v, %v", train, val, err)
	}
	for _, part := range []Dataset{train, val} {
		if _, ok, err := Encoded(part, 0, new(Scratch)); !ok || err != nil {
			t.Errorf("a part gives no files of images: %v", err)
		}
	}
	train, val, err = Open(dir, Options{Val: dir})
	if err != nil || train.Len() != 10 || val.Len() != 10 {
		t.Fatalf("%v %v, %v", train, val, err)
	}
	if _, _, err := Open(dir, Options{ValSplit: 0.2, Val: dir}); err == nil {
		t.Error("a split beside validation images")
	}
	if _, _, err := Open("glyphs", Options{ValSplit: 0.2}); err == nil || !strings.Contains(err.Error(), "leave out") {
		t.Errorf("a split of what has validation images: %v", err)
	}
}
