package data

import (
	"image"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"onlinerna/data/augment"
	"onlinerna/data/internal/datatest"
)

// Files of equal content in several class folders are images of several classes.
func TestFoldersOfSeveralClasses(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"cat/1.jpg": "one", "dog/other.jpg": "one", "cat/2.jpg": "two",
		"dog/1.jpg": "own", "dog/3.jpg": "six"} {
		datatest.Write(t, dir, name, []byte(text))
	}
	if err := os.Symlink(filepath.Join(dir, "cat", "2.jpg"), filepath.Join(dir, "dog", "2.jpg")); err != nil {
		t.Skip(err)
	}
	plain, _, err := Open(dir, Options{NoVal: true})
	if err != nil || plain.Len() != 6 || TaskOf(plain) != Classification {
		t.Fatal(plain, err)
	}
	set, _, err := Open(dir, Options{NoVal: true, Task: MultiLabel})
	if err != nil || set.Len() != 4 || TaskOf(set) != MultiLabel {
		t.Fatal(set, err)
	}
	var got []string
	for i := range set.Len() {
		got = append(got, strings.TrimPrefix(filepath.ToSlash(set.Name(i)), filepath.ToSlash(dir)+"/")+" "+Describe(set, i))
	}
	if want := []string{"cat/1.jpg cat;dog", "cat/2.jpg cat;dog", "dog/1.jpg dog", "dog/3.jpg dog"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if !slices.Equal(ClassCounts(set), []int{2, 4}) || !strings.Contains(strings.Join(Notes(set), ";"), "4 files of equal content are 2 images") {
		t.Errorf("%v, %q", ClassCounts(set), Notes(set))
	}
	if a, b := IdentityOf(plain), IdentityOf(set); a.Labels == b.Labels || Fingerprint(plain) == Fingerprint(set) {
		t.Error("the sets have one identity")
	}
	if _, _, err := Open(dir, Options{NoVal: true, Task: Regression}); err == nil || !strings.Contains(err.Error(), "takes a table of numbers") {
		t.Error(err)
	}
}

// The validation set is of the task of the training set, or an error.
func TestTaskOfValidation(t *testing.T) {
	dir := t.TempDir()
	datatest.Write(t, dir, "a.png", []byte("x"))
	datatest.Write(t, dir, "b.png", []byte("y"))
	write := func(train, val string) {
		datatest.Write(t, dir, "train.csv", []byte(train))
		datatest.Write(t, dir, "val.csv", []byte(val))
	}
	write("a.png,cat;dog\nb.png,\n", "a.png,cat\nb.png,\n")
	_, val, err := Open(dir, Options{})
	if err != nil || TaskOf(val) != MultiLabel || Describe(val, 0) != "cat" || Describe(val, 1) != "" {
		t.Error(val, err)
	}
	write("a.png,cat\nb.png,dog\n", "a.png,cat;dog\n")
	if _, _, err := Open(dir, Options{}); err == nil || !strings.Contains(err.Error(), "several classes, cat;dog: that is of the task multi-label") {
		t.Error(err)
	}
	write("file,x\na.png,1\nb.png,2\n", "file,y\na.png,1\n")
	if _, _, err := Open(dir, Options{Task: Regression}); err == nil || !strings.Contains(err.Error(), "there is no column x: found y") {
		t.Error(err)
	}
}

// Batches have rows of targets, mixed as their images, and each class lies on both sides of a split.
func TestTargetsOfBatches(t *testing.T) {
	var images []image.Image
	var rows [][]float64
	for i := range 40 {
		m := image.NewGray(image.Rect(0, 0, 8, 8))
		for p := range m.Pix {
			m.Pix[p] = uint8(6 * i)
		}
		images, rows = append(images, image.Image(m)), append(rows, []float64{float64(6 * i), float64(i % 2)})
	}
	set, err := FromTargets(Regression, []string{"brightness", "odd"}, images, rows)
	if err != nil {
		t.Fatal(err)
	}
	for _, mix := range []augment.Mix{{}, {Mixup: 1}} {
		l, err := NewLoader(set, augment.EvalSmall(8), LoaderOptions{Batch: 7, Shuffle: true, Mix: mix, Workers: 2})
		if err != nil {
			t.Fatal(err)
		}
		for b, err := range l.Epoch(t.Context(), 1, 0) {
			if err != nil || len(b.Targets) != 2*b.N || b.Labels[0] != -1 {
				t.Fatal(b, err)
			}
			for n := range b.N {
				if d := b.Targets[2*n] - float32(b.Images[n*64]); d > 1 || d < -1 {
					t.Errorf("mix %v: target %g of an image of brightness %d", mix, b.Targets[2*n], b.Images[n*64])
				}
			}
		}
	}
	multi := make([][]float64, 40)
	for i := range multi {
		multi[i] = []float64{1, 0, 0}
		if i%4 == 0 {
			multi[i] = []float64{1, 1, 0}
		}
	}
	if set, err = FromTargets(MultiLabel, []string{"all", "rare", "none"}, images, multi); err != nil {
		t.Fatal(err)
	}
	train, val, err := SplitByClass(set, .2)
	if err != nil || ClassCounts(train)[1] != 8 || ClassCounts(val)[1] != 2 || val.Len() != 8 {
		t.Error(ClassCounts(train), ClassCounts(val), err)
	}
	if _, err := NewLoader(set, augment.EvalSmall(8), LoaderOptions{Batch: 7, Shuffle: true, Balanced: true}); err == nil {
		t.Error("balanced multi-label batches")
	}
}
