package format

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"slices"
	"testing"

	"onlinerna/data/internal/datatest"
)

// idxImages is an IDX file of n images of 3×2 whose pixels count up.
func idxImages(n int) []byte {
	b := binary.BigEndian.AppendUint32(nil, 0x803)
	for _, d := range []int{n, 3, 2} {
		b = binary.BigEndian.AppendUint32(b, uint32(d))
	}
	for i := range n * 6 {
		b = append(b, byte(i))
	}
	return b
}

func idxLabels(labels ...byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, 0x801)
	return append(binary.BigEndian.AppendUint32(b, uint32(len(labels))), labels...)
}

func zipped(t *testing.T, b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestIDX(t *testing.T) {
	plain, gz := t.TempDir(), t.TempDir()
	datatest.Write(t, plain, "train-images-idx3-ubyte", idxImages(4))
	datatest.Write(t, plain, "train-labels-idx1-ubyte", idxLabels(3, 0, 1, 2))
	datatest.Write(t, plain, "t10k-images.idx3-ubyte", idxImages(2))
	datatest.Write(t, plain, "t10k-labels.idx1-ubyte", idxLabels(1, 2))
	datatest.Write(t, gz, "train-images-idx3-ubyte.gz", zipped(t, idxImages(4)))
	datatest.Write(t, gz, "train-labels-idx1-ubyte.gz", zipped(t, idxLabels(3, 0, 1, 2)))
	datatest.Write(t, gz, "t10k-images-idx3-ubyte", zipped(t, idxImages(2))) // content decides, not the name
	datatest.Write(t, gz, "t10k-labels-idx1-ubyte.gz", idxLabels(1, 2))
	for _, dir := range []string{plain, gz} {
		train, val, err := openPlace(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		datatest.Close(t, train, val)
		if train.Len() != 4 || val.Len() != 2 || train.Channels() != 1 {
			t.Fatalf("%d and %d images of %d channels", train.Len(), val.Len(), train.Channels())
		}
		if want := []string{"0", "1", "2", "3"}; !slices.Equal(val.Classes(), want) {
			t.Errorf("classes %q, want %q", val.Classes(), want)
		}
		if train.Label(0) != 3 || val.Label(1) != 2 {
			t.Errorf("labels %d, %d, want 3, 2", train.Label(0), val.Label(1))
		}
		var s Buffer
		img, err := decode(train, 2, &s)
		if err != nil {
			t.Fatal(err)
		}
		if img.Height != 3 || img.Width != 2 || !slices.Equal(img.Pix, []byte{12, 13, 14, 15, 16, 17}) {
			t.Errorf("image 2 is %+v", img)
		}
		eval, err := OpenEval(dir, train.Classes(), "")
		if err != nil {
			t.Fatal(err)
		}
		datatest.Close(t, eval)
		if eval.Len() != 2 {
			t.Errorf("%d images for evaluation, want 2", eval.Len())
		}
	}
}

func TestIDXLoneTestSetIsSplit(t *testing.T) {
	dir := t.TempDir()
	datatest.Write(t, dir, "t10k-images-idx3-ubyte", idxImages(10))
	datatest.Write(t, dir, "t10k-labels-idx1-ubyte", idxLabels(0, 1, 2, 3, 4, 5, 6, 7, 8, 9))
	train, val, err := openPlace(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	eval, err := OpenEval(dir, train.Classes(), "")
	if err != nil {
		t.Fatal(err)
	}
	datatest.Close(t, train, val, eval)
	if train.Len() != 8 || val.Len() != 2 || eval.Len() != 2 {
		t.Fatalf("%d, %d, %d images, want 8, 2, 2", train.Len(), val.Len(), eval.Len())
	}
	if train.Label(7) != 7 || val.Label(0) != 8 || eval.Name(1) != val.Name(1) || len(val.Classes()) != 10 {
		t.Errorf("labels %d, %d, names %s, %s", train.Label(7), val.Label(0), eval.Name(1), val.Name(1))
	}
	if fingerprint(t, val) != fingerprint(t, eval) {
		t.Error("OpenEval and Open give different images")
	}
}

func TestIDXErrors(t *testing.T) {
	const images, labels = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"
	good := idxImages(2)
	huge := slices.Clone(good[:16])
	copy(huge[4:], []byte{255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255})
	for _, c := range []struct {
		name           string
		images, labels []byte
		classes        []string
		want           []string
	}{
		{"cut short", good[:20], idxLabels(0, 1), nil, []string{images, "20 bytes", "28"}},
		{"too long", append(slices.Clone(good), 0), idxLabels(0, 1), nil, []string{images, "29 bytes"}},
		{"no header", good[:7], idxLabels(0, 1), nil, []string{images, "header"}},
		{"magic", idxLabels(0, 1, 2, 3, 4, 5, 6, 7, 8), idxLabels(0, 1), nil,
			[]string{images, "magic", "0x00000801", "0x00000803"}},
		{"huge", huge, idxLabels(0, 1), nil, []string{images, "too large"}},
		{"count", good, idxLabels(0), nil, []string{images, "2 images", "1 labels"}},
		{"no images", idxImages(0), idxLabels(), nil, []string{labels, "no labels"}},
		{"labels' magic", good, good, nil, []string{labels, "magic"}},
		{"label", good, idxLabels(0, 2), []string{"a", "b"}, []string{labels, "image 1", "label 2"}},
		{"gzip", append([]byte{0x1f, 0x8b}, good...), idxLabels(0, 1), nil, []string{images}},
		{"gzip cut", zipped(t, good)[:30], idxLabels(0, 1), nil, []string{images}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			datatest.Write(t, dir, images, c.images)
			datatest.Write(t, dir, labels, c.labels)
			_, _, err := openPlace(dir, c.classes)
			datatest.WantError(t, err, c.want...)
		})
	}
	dir := t.TempDir()
	datatest.Write(t, dir, images, good)
	_, _, err := openPlace(dir, nil)
	datatest.WantError(t, err, images, labels, "missing")
}

func FuzzReadIDXHeader(f *testing.F) {
	f.Add(idxImages(2), 3)
	f.Add(idxLabels(1, 2), 1)
	f.Fuzz(func(t *testing.T, b []byte, rank int) {
		if rank < 1 || rank > 3 {
			return
		}
		dims, start, err := readIDXHeader(bytes.NewReader(b), int64(len(b)), rank)
		if err != nil {
			return
		}
		size := int(start)
		count := 1
		for _, d := range dims {
			count *= d
		}
		if size+count != len(b) {
			t.Errorf("dimensions %v in %d bytes", dims, len(b))
		}
	})
}
