package data

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"onlinerna/data/augment"
	"onlinerna/data/format"
	"onlinerna/data/internal/datatest"
)

func TestOpenFolders(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"train/a/1.jpg", "train/b/1.jpg", "train/c/1.jpg", "test/b/1.jpg", "test/c/2.jpg"} {
		datatest.Write(t, dir, name, nil)
	}
	train, val, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if train.Len() != 3 || val.Len() != 2 || len(val.Classes()) != 3 {
		t.Fatalf("%d and %d images, %d classes", train.Len(), val.Len(), len(val.Classes()))
	}
	if val.Label(0) != 1 || val.Label(1) != 2 {
		t.Errorf("labels %d, %d, want 1, 2: folders are mapped by name", val.Label(0), val.Label(1))
	}
	list := []string{"c", "x", "b", "a"}
	train, val, err = Open(dir, Options{Classes: list})
	if err != nil {
		t.Fatal(err)
	}
	if train.Label(0) != 3 || val.Label(0) != 2 || val.Label(1) != 0 || !slices.Equal(train.Classes(), list) {
		t.Errorf("labels %d, %d, %d, want 3, 2, 0", train.Label(0), val.Label(0), val.Label(1))
	}

	// val/ takes precedence over test/, and a separate place over both.
	datatest.Write(t, dir, "val/a/1.jpg", nil)
	if _, val, err = Open(dir, Options{}); err != nil || val.Len() != 1 {
		t.Errorf("val/ is not preferred: %v", err)
	}
	other := t.TempDir()
	for _, name := range []string{"c/1.jpg", "c/2.jpg", "c/3.jpg"} {
		datatest.Write(t, other, name, nil)
	}
	if _, val, err = Open(dir, Options{Val: other}); err != nil || val.Len() != 3 || val.Label(0) != 2 {
		t.Errorf("another place for validation: %v", err)
	}

	datatest.Write(t, dir, "val/zebra/1.jpg", nil)
	_, _, err = Open(dir, Options{})
	datatest.WantError(t, err, filepath.Join(dir, "val", "zebra"), `"zebra"`)
}

func TestOpenEval(t *testing.T) {
	image := datatest.PNG(t, 2, 2, 0)
	shard := datatest.Tar(t, datatest.File("a.png", image), datatest.Text("a.cls", "1"))
	folders, shards, some, train, trainShards := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	datatest.Write(t, folders, "val/b/1.jpg", nil)
	datatest.Write(t, folders, "train/a/1.jpg", nil)
	datatest.Write(t, shards, "train-0.tar", shard)
	datatest.Write(t, shards, "test-0.tar", shard)
	datatest.Write(t, some, "part-0.tar", shard)
	datatest.Write(t, some, "part-1.tar", shard)
	datatest.Write(t, train, "train/a/1.jpg", nil)
	datatest.Write(t, trainShards, "train-0.tar", shard)
	classes := []string{"a", "b", "train"}
	for _, c := range []struct {
		path       string
		n, label   int
		ownClasses int
	}{
		{folders, 1, 1, 1},
		{filepath.Join(folders, "val"), 1, 1, 1},
		{filepath.Join(folders, "train"), 1, 0, 1},
		{shards, 1, 1, 2},
		{some, 2, 1, 2},
		{filepath.Join(shards, "train-0.tar"), 1, 1, 2},
	} {
		ds, err := OpenEval(c.path, classes, "")
		if err != nil {
			t.Fatal(err)
		}
		if ds.Len() != c.n || ds.Label(0) != c.label || len(ds.Classes()) != 3 {
			t.Errorf("%s: %d images, label %d, %d classes", c.path, ds.Len(), ds.Label(0), len(ds.Classes()))
		}
		if ds, err = OpenEval(c.path, nil, ""); err != nil || len(ds.Classes()) != c.ownClasses {
			t.Errorf("%s: error %v, want %d classes of its own", c.path, err, c.ownClasses)
		}
	}
	for path, mentions := range map[string]string{
		train:                              "training set only",
		trainShards:                        "training set only",
		t.TempDir():                        "no class folders",
		filepath.Join(train, "missing"):    "missing",
		filepath.Join(train, "gone.tar"):   "gone.tar",
		filepath.Join(folders, "val", "b"): "without class folders",
	} {
		_, err := OpenEval(path, nil, "")
		datatest.WantError(t, err, mentions)
	}
	// A class may be called train.
	datatest.Write(t, train, "b/1.jpg", nil)
	datatest.Write(t, train, "train/1.jpg", nil)
	if ds, err := OpenEval(train, classes, ""); err != nil || ds.Len() != 3 {
		t.Errorf("a class called train: %v", err)
	}
}

func TestOpenErrors(t *testing.T) {
	empty := t.TempDir()
	_, _, err := Open(empty, Options{})
	datatest.WantError(t, err, empty, "no training set", "<class>/*.jpg", "--val-split", "train-*.tar")
	datatest.Write(t, empty, "a/1.txt", nil)
	_, _, err = Open(empty, Options{})
	datatest.WantError(t, err, empty, "no class folder has images")
	datatest.Write(t, empty, "1.jpg", nil)
	_, _, err = Open(empty, Options{})
	datatest.WantError(t, err, empty, "images without class folders")
	_, _, err = Open(filepath.Join(empty, "nowhere"), Options{})
	datatest.WantError(t, err, "nowhere")
	_, _, err = Open("glyphs", Options{Val: filepath.Join(empty, "nowhere")})
	datatest.WantError(t, err, "nowhere")
	_, _, err = Open("glyphs", Options{Classes: []string{"circle"}})
	datatest.WantError(t, err, "triangle")
}

func TestOpenGlyphs(t *testing.T) {
	train, val, err := Open("", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if train.Len() != 8000 || val.Len() != 4000 || val.Name(7) != "glyphs/test/0007" || train.Channels() != 1 {
		t.Errorf("%d and %d images, %s", train.Len(), val.Len(), val.Name(7))
	}
	reversed := slices.Clone(train.Classes())
	slices.Reverse(reversed)
	_, other, err := Open("glyphs", Options{Classes: reversed})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		if other.Label(i) != 9-val.Label(i) {
			t.Errorf("label %d is %d, want %d", i, other.Label(i), 9-val.Label(i))
		}
	}
	if p, err := ProfileOf(other); err != nil || p.Name != "glyphs" {
		t.Errorf("profile %+v, %v", p, err)
	}
}

func TestSubset(t *testing.T) {
	ds, err := Subset(fake{n: 10}, []int{7, 2, 7})
	if err != nil {
		t.Fatal(err)
	}
	var s Scratch
	img, err := ds.Read(0, nil, &s)
	if err != nil {
		t.Fatal(err)
	}
	if ds.Len() != 3 || ds.Label(1) != 2 || ds.Name(2) != "image-7" || img.Pix[0] != 7 {
		t.Errorf("%d images, label %d, %s, pixel %d", ds.Len(), ds.Label(1), ds.Name(2), img.Pix[0])
	}
	for _, i := range []int{-1, 10} {
		_, err := Subset(fake{n: 10}, []int{0, i})
		datatest.WantError(t, err, "position 1")
	}
}

func TestProfiles(t *testing.T) {
	folder := func(files map[string][]byte) Dataset {
		root := t.TempDir()
		for name, content := range files {
			datatest.Write(t, root, name, content)
		}
		ds, err := OpenEval(root, nil, "")
		if err != nil {
			t.Fatal(err)
		}
		return ds
	}
	for _, c := range []struct {
		ds      Dataset
		name    string
		size    int
		augment string
	}{
		{Glyphs(format.GlyphVal), "glyphs", 28, augment.EvalSmall(28).String()},
		{fake{n: 9}, "mnist", 4, augment.EvalSmall(4).String()},
		{folder(map[string][]byte{"a/1.png": datatest.PNG(t, 32, 32, 0), "a/2.png": datatest.PNG(t, 32, 32, 1)}),
			"cifar", 32, augment.TrainCIFAR(32).String()},
		{folder(map[string][]byte{"a/1.png": datatest.PNG(t, 32, 32, 0), "a/0.png": nil}), "cifar", 32,
			augment.TrainCIFAR(32).String()},
		{folder(map[string][]byte{"a/1.png": datatest.PNG(t, 32, 32, 0), "a/2.png": datatest.PNG(t, 30, 30, 1)}),
			"imagenet", 224, augment.TrainImageNet(224).String()},
		{folder(map[string][]byte{"a/1.png": datatest.PNG(t, 300, 300, 0)}), "imagenet", 224,
			augment.TrainImageNet(224).String()},
	} {
		p, err := ProfileOf(c.ds)
		if err != nil {
			t.Fatal(err)
		}
		if p.Name != c.name || p.Size != c.size || len(p.Mean) != c.ds.Channels() || len(p.Std) != c.ds.Channels() {
			t.Errorf("profile %+v, want %s of size %d", p, c.name, c.size)
		}
		if tr, err := p.Train("auto", p.Size); err != nil || tr.String() != c.augment {
			t.Errorf("%s: augmented by %v, want %v", p.Name, tr, c.augment)
		}
		for _, name := range Augmentations() {
			if tr, err := p.Train(name, 16); err != nil || tr.Size() != 16 {
				t.Errorf("%s: transform %q: %v", p.Name, name, err)
			}
		}
		if tr, _ := p.Train("none", 16); tr != p.Eval(16) {
			t.Errorf("%s: none is %v", p.Name, tr)
		}
		_, err = p.Train("mixup", 16)
		datatest.WantError(t, err, `"mixup"`, "cifar")
	}
	_, err := ProfileOf(folder(map[string][]byte{"a/1.png": nil}))
	datatest.WantError(t, err, "1.png")

	p, err := ProfileOf(folder(map[string][]byte{"a/1.png": datatest.PNG(t, 64, 64, 0)}))
	if err != nil {
		t.Fatal(err)
	}
	if p.Size != 64 || p.Mean[0] != imageNetMean[0] {
		t.Errorf("profile of 64×64 photographs: %+v", p)
	}
	for size, want := range map[int]augment.Transform{64: augment.EvalSmall(64), 96: augment.EvalSmall(96),
		56: augment.Eval(56)} {
		if got := p.Eval(size); got != want {
			t.Errorf("64×64 images at %d: %v, want %v", size, got, want)
		}
	}
}

// Notes are those of the format and list the classes without images, also for a part of a set.
func TestNotes(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"train/cat/1.jpg", "train/cat/2.ppm", "train/cat/3.jpg", "train/dog/1.jpg",
		"val/0/1.jpg"} {
		datatest.Write(t, dir, name, nil)
	}
	train, val, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	part, err := Subset(train, []int{0, 1})
	if err != nil {
		t.Fatal(err)
	}
	_, again, err := SplitByClass(part, 0.5)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		set  Dataset
		want []string
	}{
		{train, []string{"1 files .ppm are passed over"}},
		{val, []string{"called by numbers", "warning: 1 of 2 classes without images: dog"}},
		{part, []string{"1 files .ppm are passed over", "warning: 1 of 2 classes without images: dog"}},
		{again, nil},
	} {
		notes := Notes(c.set)
		if len(notes) != len(c.want) {
			t.Errorf("notes %q, want %q", notes, c.want)
			continue
		}
		for i, want := range c.want {
			if !strings.Contains(notes[i], want) {
				t.Errorf("note %q, want %q", notes[i], want)
			}
		}
	}
}
