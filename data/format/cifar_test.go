package format

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"image"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"onlinerna/data/internal/datatest"
)

// TestCIFAR compares all forms with torchvision.datasets: see testdata/cifar.py.
func TestCIFAR(t *testing.T) {
	golden, err := os.ReadFile("testdata/cifar/torchvision.json")
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]struct {
		Classes []string
		Labels  []int
		Sums    []string
	}
	if err := json.Unmarshal(golden, &want); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ form, inner, as string }{
		{"python2", "cifar-10-batches-py", "python2"},
		{"python", "cifar-10-batches-py", "python"},
		{"binary", "cifar-10-batches-bin", "python2"},
		{"python2-100", "cifar-100-python", "python2-100"},
		{"binary-100", "cifar-100-binary", "python2-100"},
	} {
		// torchvision's folder, and the one in it
		for _, dir := range []string{c.form, filepath.Join(c.form, c.inner)} {
			train, test := openBoth(t, filepath.Join("testdata/cifar", dir))
			var b Buffer
			for split, set := range map[string]Set{"train": train, "test": test} {
				w := want[c.as+" "+split]
				if set.Len() != len(w.Sums) || set.Channels() != 3 || !slices.Equal(set.Classes(), w.Classes) {
					t.Fatalf("%s %s: %d images, %q", dir, split, set.Len(), set.Classes())
				}
				for i := range w.Sums {
					m, err := decode(set, i, &b)
					if err != nil {
						t.Fatal(err)
					}
					sum := sha256.Sum256(m.Pix)
					if set.Label(i) != w.Labels[i] || m.Width != 32 || m.Height != 32 ||
						hex.EncodeToString(sum[:]) != w.Sums[i] {
						t.Errorf("%s: label %d, want %d, or other pixels", set.Name(i), set.Label(i), w.Labels[i])
					}
				}
			}
		}
	}
}

// TestCIFARAlone opens a test set by itself, and a set with the classes of a net.
func TestCIFARAlone(t *testing.T) {
	dir := t.TempDir()
	b := read(t, "testdata/cifar/binary/cifar-10-batches-bin/test_batch.bin")
	datatest.Write(t, dir, "test_batch.bin", b)
	set, err := OpenEval(dir, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	datatest.Close(t, set)
	if got := set.Classes(); set.Len() != 2 || len(got) != 10 || got[9] != "9" {
		t.Errorf("%d images of %q", set.Len(), got)
	}
	if want := filepath.Join(dir, "test_batch.bin") + "/1"; set.Name(1) != want {
		t.Errorf("%s, want %s", set.Name(1), want)
	}
	var buffer Buffer
	p, err := set.(Pixels).Pixels(1, func(w, h int) image.Rectangle { return image.Rect(1, 2, w, h) }, &buffer)
	if err != nil || p.Box != image.Rect(1, 2, 32, 32) || p.Pix[3*33+1] != b[3073+1+1024+33] {
		t.Errorf("%v of another pixel, %v", p.Box, err)
	}
	_, err = OpenEval("testdata/cifar/python", []string{"cat", "dog"}, "")
	if err == nil || !strings.Contains(err.Error(), "is not among the 2 known classes") {
		t.Error(err)
	}
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestCIFARErrors(t *testing.T) {
	python, binary := "testdata/cifar/python2/cifar-10-batches-py", "testdata/cifar/binary/cifar-10-batches-bin"
	for _, c := range []struct {
		name, from string
		change     func(dir string)
		want       string
	}{
		{"a batch is missing", python, func(dir string) {
			os.Remove(filepath.Join(dir, "data_batch_3"))
		}, "data_batch_3 is missing"},
		{"cut", binary, func(dir string) { os.Truncate(filepath.Join(dir, "data_batch_1.bin"), 4000) },
			"data_batch_1.bin: 4000 bytes are no whole number of images of 3073 bytes"},
		{"a label too large", binary, func(dir string) { patch(t, dir, "data_batch_2.bin", 0, 10) },
			"data_batch_2.bin/0: label 10 is outside [0, 10)"},
		{"few names", binary, func(dir string) { datatest.Write(t, dir, "batches.meta.txt", []byte("cat\ndog\n")) },
			"batches.meta.txt: 2 names of classes in place of 10"},
		{"names that are no pickle", python, func(dir string) {
			datatest.Write(t, dir, "batches.meta", []byte("cat"))
		}, "batches.meta: "},
		{"a pickle that runs something", python, func(dir string) {
			datatest.Write(t, dir, "data_batch_1", []byte("\x80\x02cos\nsystem\nU\x04true\x85R."))
		}, "data_batch_1: an object of os.system in place of a dict"},
		{"data that run something", python, func(dir string) {
			datatest.Write(t, dir, "data_batch_1",
				[]byte("\x80\x02}(U\x06labels](K\x01eU\x04datacos\nsystem\nU\x04true\x85Ru."))
		}, "data: an object of os.system in place of a numpy array"},
		{"other shape", python, func(dir string) {
			replace(t, dir, "data_batch_1", "K\x02M\x00\x0c", "K\x02M\x00\x0d")
		}, "another shape than N×3072"},
		{"other type", python, func(dir string) {
			replace(t, dir, "data_batch_1", "U\x02u1", "U\x02i1")
		}, `elements of type "i1"`},
		{"other rows", python, func(dir string) {
			replace(t, dir, "data_batch_1", "K\x02M\x00\x0c", "K\x03M\x00\x0c")
		}, "6144 bytes for 3 images"},
		{"fewer labels", python, func(dir string) {
			replace(t, dir, "data_batch_1", "](K\x04K\x07e", "](K\x04e")
		}, "2 images and 1 labels"},
		{"a label that is none", python, func(dir string) {
			replace(t, dir, "data_batch_1", "](K\x04K\x07e", "](K\x04Ne")
		}, "label 1 is None"},
		{"cut pickle", python, func(dir string) {
			os.Truncate(filepath.Join(dir, "data_batch_1"), 5000)
		}, "the pickle is cut short"},
		{"two sets", "testdata/cifar/python2",
			func(dir string) { os.Mkdir(filepath.Join(dir, "cifar-100-python"), 0o755) },
			"several data sets: name "},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(c.from)); err != nil {
				t.Fatal(err)
			}
			c.change(dir)
			_, _, err := openPlace(dir, nil)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), dir) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

func patch(t *testing.T, dir, name string, at int, to byte) {
	b := read(t, filepath.Join(dir, name))
	b[at] = to
	datatest.Write(t, dir, name, b)
}

func replace(t *testing.T, dir, name, from, to string) {
	b := read(t, filepath.Join(dir, name))
	if !bytes.Contains(b, []byte(from)) {
		t.Fatalf("%s lacks %q", name, from)
	}
	datatest.Write(t, dir, name, bytes.Replace(b, []byte(from), []byte(to), 1))
}

// FuzzCIFARPickle reads arbitrary pickles: each image of an accepted one can be read, or the error names it.
func FuzzCIFARPickle(f *testing.F) {
	for _, form := range []string{"python", "python2"} {
		f.Add(read(f, "testdata/cifar/"+form+"/cifar-10-batches-py/test_batch"))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(dir, "test_batch")
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		set, err := cifarForms[2].open(dir, []string{"test_batch"}, nil)
		if err != nil {
			return
		}
		defer set.Close()
		var buffer Buffer
		for i := range min(set.Len(), 10) {
			if _, err := set.Pixels(i, nil, &buffer); err != nil && !strings.Contains(err.Error(), path) {
				t.Error(err)
			}
		}
	})
}

// TestFashionMNIST: class names come from the name of torchvision's folder, or from classes.txt for any set.
func TestFashionMNIST(t *testing.T) {
	top := t.TempDir()
	fashion := filepath.Join(top, "FashionMNIST", "raw")
	if err := os.MkdirAll(fashion, 0o755); err != nil {
		t.Fatal(err)
	}
	datatest.Write(t, fashion, "train-images-idx3-ubyte", idxImages(4))
	datatest.Write(t, fashion, "train-labels-idx1-ubyte", idxLabels(3, 0, 9, 2))
	for _, dir := range []string{top, fashion} {
		train, _ := openBoth(t, dir)
		if got := train.Classes(); len(got) != 10 || got[9] != "Ankle boot" || train.Label(2) != 9 {
			t.Errorf("%q", got)
		}
	}
	datatest.Write(t, fashion, "classes.txt", []byte("a\nb\nc\nd\n"))
	if _, _, err := openPlace(fashion, nil); err == nil || !strings.Contains(err.Error(), "label 9 is outside [0, 4)") {
		t.Error(err)
	}
	datatest.Write(t, fashion, "classes.txt", []byte("9\n8\n7\n6\n5\n4\n3\n2\n1\n0\n"))
	train, _ := openBoth(t, fashion)
	if train.Classes()[0] != "9" {
		t.Errorf("%q", train.Classes())
	}
	mnist := filepath.Join(top, "MNIST", "raw")
	if err := os.MkdirAll(mnist, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, _, err := openPlace(top, nil); err == nil || !strings.Contains(err.Error(), "several data sets") {
		t.Error(err)
	}
}
