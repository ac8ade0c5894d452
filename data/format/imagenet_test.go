package format

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"onlinerna/data/internal/datatest"
)

// Three classes whose ILSVRC2012_ID are 2, 1 and 3 in the order of the wnids: see testdata/devkit.py.
var devkitClasses = []string{"n01440764", "n02119789", "n03000001"}

// devkit is the archive with the ground truth of images 1, 2, ….
func devkit(t testing.TB, ids ...int) []byte {
	t.Helper()
	meta, err := os.ReadFile(filepath.Join("testdata", "meta.mat"))
	if err != nil {
		t.Fatal(err)
	}
	truth := ""
	for _, id := range ids {
		truth += fmt.Sprintln(id)
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write(datatest.Tar(t, datatest.Text(devkitFolder+"/readme.txt", "…"),
		datatest.File(devkitFolder+"/data/meta.mat", meta),
		datatest.Text(devkitFolder+"/data/ILSVRC2012_validation_ground_truth.txt", truth)))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// pictures are the training images by name, as the official archives, Kaggle's folders and the others hold them.
func trainPictures(t testing.TB) []datatest.Member {
	var list []datatest.Member
	for i, class := range []int{0, 0, 1, 2, 2} {
		list = append(list, datatest.File(fmt.Sprintf("%s_%d.JPEG", devkitClasses[class], 10+i),
			datatest.JPEG(t, 24+i, 20, i)))
	}
	return list
}

func valPictures(t testing.TB) []datatest.Member {
	var list []datatest.Member
	for i := range 4 {
		list = append(list, datatest.File(fmt.Sprintf("ILSVRC2012_val_%08d.JPEG", i+1),
			datatest.JPEG(t, 20, 24+i, 10+i)))
	}
	return list
}

// The classes of the validation images, as IDs of the devkit and as labels.
var (
	valIDs    = []int{2, 3, 1, 1}
	valLabels = []int{0, 2, 1, 1}
)

// officialArchives writes ImageNet's three files. The inner archives are in no order.
func officialArchives(t testing.TB, dir string) {
	t.Helper()
	byClass := map[string][]datatest.Member{}
	for _, m := range trainPictures(t) {
		byClass[m.Name[:9]] = append(byClass[m.Name[:9]], m)
	}
	var outer []datatest.Member
	for _, class := range []string{devkitClasses[1], devkitClasses[0], devkitClasses[2]} {
		outer = append(outer, datatest.File(class+".tar", datatest.Tar(t, byClass[class]...)))
	}
	val := valPictures(t)
	slices.Reverse(val)
	datatest.Write(t, dir, imageNetTrain, datatest.Tar(t, outer...))
	datatest.Write(t, dir, imageNetVal, datatest.Tar(t, val...))
	datatest.Write(t, dir, devkitArchive, devkit(t, valIDs...))
}

// imageFolder writes the same images as torchvision's layout.
func imageFolder(t testing.TB, dir string) {
	t.Helper()
	for _, m := range trainPictures(t) {
		datatest.Write(t, dir, "train/"+m.Name[:9]+"/"+m.Name, m.Content)
	}
	for i, m := range valPictures(t) {
		datatest.Write(t, dir, "val/"+devkitClasses[valLabels[i]]+"/"+m.Name, m.Content)
	}
}

func TestImageNetArchives(t *testing.T) {
	folders, archives := t.TempDir(), t.TempDir()
	imageFolder(t, folders)
	officialArchives(t, archives)
	want, wantVal := openBoth(t, folders)
	train, val := openBoth(t, archives)
	sameSets(t, train, want)
	if !slices.Equal(val.Classes(), devkitClasses) || val.Len() != wantVal.Len() {
		t.Fatalf("%d images of %q", val.Len(), val.Classes())
	}
	for i, label := range valLabels { // in the order of their numbers
		if val.Label(i) != label || filepath.Base(val.Name(i)) != valPictures(t)[i].Name {
			t.Errorf("%s has the label %d, want %d", val.Name(i), val.Label(i), label)
		}
	}
	if name := train.Name(0); name != filepath.Join(archives, imageNetTrain)+"/n01440764.tar/n01440764_10.JPEG" {
		t.Errorf("name %s", name)
	}
	for _, path := range []string{imageNetVal, imageNetTrain} {
		ds, err := OpenEval(filepath.Join(archives, path), devkitClasses, "")
		if err != nil {
			t.Fatal(err)
		}
		datatest.Close(t, ds)
	}
	// A flat folder beside the devkit, packed or not.
	for _, m := range valPictures(t) {
		datatest.Write(t, archives, "flat/val/"+m.Name, m.Content)
	}
	flat, err := OpenEval(filepath.Join(archives, "flat"), devkitClasses, "")
	if err != nil {
		t.Fatal(err)
	}
	sameSets(t, flat, val)
}

func TestImageNetErrors(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(dir string)
		want []string
	}{
		{"no devkit", func(dir string) { os.Remove(filepath.Join(dir, devkitArchive)) },
			[]string{imageNetVal, "labels are missing", devkitArchive}},
		{"few labels", func(dir string) { datatest.Write(t, dir, devkitArchive, devkit(t, 1, 2)) },
			[]string{imageNetVal, "val_00000003", "2 labels"}},
		{"unknown ID", func(dir string) { datatest.Write(t, dir, devkitArchive, devkit(t, 1, 4)) },
			[]string{"line 2", `"4"`, "ILSVRC2012_ID"}},
		{"empty devkit", func(dir string) { datatest.Write(t, dir, devkitArchive, nil) }, []string{devkitArchive}},
		{"flat train", func(dir string) { datatest.Write(t, dir, imageNetTrain, datatest.Tar(t, trainPictures(t)...)) },
			[]string{imageNetTrain, "no archives"}},
		{"empty class", func(dir string) {
			datatest.Write(t, dir, imageNetTrain, datatest.Tar(t, datatest.File("n01440764.tar", datatest.Tar(t))))
		}, []string{"n01440764.tar", "no images"}},
		{"other names", func(dir string) {
			datatest.Write(t, dir, imageNetVal,
				datatest.Tar(t, datatest.File("a.JPEG", nil)))
		}, []string{"a.JPEG", "ILSVRC2012_val_"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			officialArchives(t, dir)
			c.edit(dir)
			_, _, err := openPlace(dir, nil)
			datatest.WantError(t, err, c.want...)
		})
	}
	// Cut anywhere, in the outer or in an inner archive.
	dir := t.TempDir()
	officialArchives(t, dir)
	whole, err := os.ReadFile(filepath.Join(dir, imageNetTrain))
	if err != nil {
		t.Fatal(err)
	}
	for size := 0; size < len(whole)-2*tarBlock; size += 257 {
		datatest.Write(t, dir, imageNetTrain, whole[:size])
		_, err := openImageNetTrain(filepath.Join(dir, imageNetTrain), nil)
		datatest.WantError(t, err, imageNetTrain)
	}
	// A part that was never written is zeros.
	holed := bytes.Clone(whole)
	clear(holed[len(whole)/2/tarBlock*tarBlock:][:4*tarBlock])
	datatest.Write(t, dir, imageNetTrain, holed)
	_, err = openImageNetTrain(filepath.Join(dir, imageNetTrain), nil)
	if err == nil {
		t.Error("no error of an archive with a hole of zeros in its headers")
	}
}

func TestKaggle(t *testing.T) {
	folders, kaggle := t.TempDir(), t.TempDir()
	imageFolder(t, folders)
	for _, m := range trainPictures(t) {
		datatest.Write(t, kaggle, "ILSVRC/Data/CLS-LOC/train/"+m.Name[:9]+"/"+m.Name, m.Content)
	}
	solution := "ImageId,PredictionString\n"
	for i, m := range valPictures(t) {
		datatest.Write(t, kaggle, "ILSVRC/Data/CLS-LOC/val/"+m.Name, m.Content)
		wnid := devkitClasses[valLabels[i]]
		solution += m.Name[:len(m.Name)-5] + "," + wnid + " 1 2 3 4 " + wnid + " 5 6 7 8 \n"
	}
	datatest.Write(t, kaggle, "ILSVRC/Data/CLS-LOC/test/ILSVRC2012_test_00000001.JPEG", nil)
	datatest.Write(t, kaggle, KaggleSolution, []byte(solution))
	want, _ := openBoth(t, folders)
	for _, place := range []string{"", "ILSVRC", "ILSVRC/Data", "ILSVRC/Data/CLS-LOC"} {
		train, val := openBoth(t, filepath.Join(kaggle, place))
		sameSets(t, train, want)
		for i, label := range valLabels {
			if val.Label(i) != label {
				t.Errorf("%s has the label %d, want %d", val.Name(i), val.Label(i), label)
			}
		}
	}
	for content, mentions := range map[string]string{
		"ImageId,Other\n": "first line",
		"ImageId,PredictionString\nILSVRC2012_val_00000001,\n": "no class",
		"ImageId,PredictionString\na,b 1\na,b 1\n":             "twice",
		"ImageId,PredictionString\na,b 1\n":                    "has no label",
	} {
		datatest.Write(t, kaggle, KaggleSolution, []byte(content))
		_, _, err := openPlace(kaggle, nil)
		datatest.WantError(t, err, KaggleSolution, mentions)
	}
}

func TestTimmShards(t *testing.T) {
	dir := t.TempDir()
	var train, val []datatest.Member
	for i, m := range trainPictures(t) {
		key := fmt.Sprintf("n0_%d", i)
		train = append(train, datatest.File(key+".jpg", m.Content),
			datatest.Text(key+".json", fmt.Sprintf(`{"label": %d, "width": 4, "filename": "x.JPEG"}`, i%3)))
		if i > 1 { // both .cls and .json
			train = append(train, datatest.Text(key+".cls", fmt.Sprint(i%3)))
		}
		val = append(val, datatest.File(key+".jpg", m.Content), datatest.Text(key+".cls", "1"))
	}
	datatest.Write(t, dir, "imagenet1k-train-0000.tar", datatest.Tar(t, train[:4]...))
	datatest.Write(t, dir, "imagenet1k-train-0001.tar", datatest.Tar(t, train[4:]...))
	datatest.Write(t, dir, "imagenet1k-validation-00.tar", datatest.Tar(t, val...))
	datatest.Write(t, dir, "_info.json", []byte(`{}`))
	set, eval := openBoth(t, dir)
	if set.Len() != 5 || eval.Len() != 5 || len(set.Classes()) != 3 || set.Label(1) != 1 || set.Label(4) != 1 {
		t.Errorf("%d and %d images of %d classes", set.Len(), eval.Len(), len(set.Classes()))
	}
	for i := range eval.Len() {
		if eval.Label(i) != 1 {
			t.Errorf("label %d is %d, want 1", i, eval.Label(i))
		}
	}
}

func TestValid(t *testing.T) {
	for _, name := range []string{"val", "valid", "validation", "test"} {
		dir := t.TempDir()
		datatest.Write(t, dir, "train/a/1.jpg", nil)
		datatest.Write(t, dir, name+"/a/1.jpg", nil)
		if _, val := openBoth(t, dir); val == nil || val.Len() != 1 {
			t.Errorf("%s is not found", name)
		}
	}
}

func TestClassesByNumber(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	for i, class := range devkitClasses {
		datatest.Write(t, dir, "train/"+class+"/1.jpg", nil)
		datatest.Write(t, other, fmt.Sprintf("%d/1.jpg", i), nil)
	}
	datatest.Write(t, dir, "val/0/1.jpg", nil)
	datatest.Write(t, dir, "val/2/1.jpg", nil)
	_, val := openBoth(t, dir)
	if val.Label(0) != 0 || val.Label(1) != 2 {
		t.Errorf("labels %d, %d", val.Label(0), val.Label(1))
	}
	datatest.WantError(t, fmt.Errorf("%q", notesOf(val)), "by numbers")
	// The other way round: names for known numbers.
	ds, err := OpenEval(filepath.Join(dir, "train"), []string{"0", "1", "2"}, "")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if ds.Label(i) != i {
			t.Errorf("label %d is %d", i, ds.Label(i))
		}
	}
	datatest.Write(t, dir, "val/3/1.jpg", nil)
	_, _, err = openPlace(dir, nil)
	datatest.WantError(t, err, "class 3", "0 to 2")
}
