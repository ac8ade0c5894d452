package format

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"onlinerna/data/internal/datatest"
)

// imageRecords are the training images as TensorFlow's scripts write them; label(i) is −1 for none.
func imageRecords(t testing.TB, label func(class int) int, synset bool) [][]byte {
	var list [][]byte
	for i, m := range trainPictures(t) {
		class := slices.Index(devkitClasses, m.Name[:9])
		features := []datatest.Feature{
			datatest.Bytes("image/filename", m.Name), datatest.Bytes("image/encoded", string(m.Content)),
			datatest.Int("image/height", 20, false), datatest.Bytes("image/format", "JPEG"),
		}
		if n := label(class); n >= 0 {
			features = append(features, datatest.Int("image/class/label", uint64(n), i%2 == 0))
		}
		if synset {
			features = append(features, datatest.Bytes("image/class/synset", m.Name[:9]))
		}
		list = append(list, datatest.Record(features...))
	}
	return list
}

func TestRecords(t *testing.T) {
	folders := t.TempDir()
	imageFolder(t, folders)
	want, _ := openBoth(t, folders)
	fromOne := func(class int) int { return class + 1 }
	for _, c := range []struct {
		name   string
		label  func(class int) int
		synset bool
		note   string
	}{
		{"from 1", fromOne, false, "labels count from 1"},
		{"from 0", func(class int) int { return class }, false, ""},
		{"synsets", func(class int) int { return 7 - class }, true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			list := imageRecords(t, c.label, c.synset)
			datatest.Write(t, dir, "train-00000-of-00002", slices.Concat(list[:3]...))
			datatest.Write(t, dir, "train-00001-of-00002", slices.Concat(list[3:]...))
			datatest.Write(t, dir, "validation-00000-of-00001", list[4])
			ds, val, err := openPlace(dir, devkitClasses)
			if err != nil {
				t.Fatal(err)
			}
			datatest.Close(t, ds, val)
			sameSets(t, ds, want)
			if notes := fmt.Sprint(notesOf(ds)); c.note != "" {
				datatest.WantError(t, fmt.Errorf("%s", notes), c.note)
			} else if notes != "[]" {
				t.Errorf("notes %s", notes)
			}
			own, _, err := openPlace(dir, nil)
			if err != nil {
				t.Fatal(err)
			}
			datatest.Close(t, own)
			if wantNames := map[bool][]string{true: devkitClasses,
				false: numbered(3)}[c.synset]; !slices.Equal(own.Classes(), wantNames) {
				t.Errorf("classes %q, want %q", own.Classes(), wantNames)
			}
		})
	}
	dir := t.TempDir()
	datatest.Write(t, dir, "imagenet-train.tfrecord-00001-of-00004", slices.Concat(imageRecords(t, fromOne, false)...))
	ds, _ := openBoth(t, dir)
	datatest.WantError(t, fmt.Errorf("%q", notesOf(ds)), "1 of 4 files are here")
}

// A bit that changes anywhere in a record is found when its image is read.
func TestRecordChecksums(t *testing.T) {
	list := imageRecords(t, func(class int) int { return class + 1 }, false)
	good := slices.Concat(list...)
	file := filepath.Join(t.TempDir(), "train.tfrecord")
	var s Buffer
	found := 0
	for at := 12; at < len(list[0]); at += 13 {
		bad := slices.Clone(good)
		bad[at] ^= 1 << (at % 8)
		datatest.Write(t, filepath.Dir(file), "train.tfrecord", bad)
		ds, err := openRecords([]string{file}, nil)
		if err != nil { // the bit is in the structure
			continue
		}
		datatest.Close(t, ds)
		_, err = decode(ds, 0, &s)
		datatest.WantError(t, err, "train.tfrecord/record 0", "does not match its checksum")
		_, err = ds.(Encoded).Encoded(0, &s)
		datatest.WantError(t, err, "checksum")
		if _, err := decode(ds, 1, &s); err != nil {
			t.Fatal(err)
		}
		found++
	}
	if found < 20 {
		t.Errorf("%d flips tried", found)
	}
}

func TestRecordErrors(t *testing.T) {
	label := func(class int) int { return class + 1 }
	whole := imageRecords(t, label, true)[0]
	flipped := slices.Clone(whole)
	flipped[3] ^= 1
	for _, c := range []struct {
		name    string
		content []byte
		want    []string
	}{
		{"checksum", flipped, []string{"offset 0", "checksum"}},
		{"no label", imageRecords(t, func(int) int { return -1 }, false)[0], []string{"record 0", "image/class/label"}},
		{"no image", datatest.Record(datatest.Int("image/class/label", 1, true)),
			[]string{"record 0", "image/encoded"}},
		{"empty", datatest.Record(), []string{"record 0", "image/encoded"}},
		{"negative label", datatest.Record(datatest.Bytes("image/encoded", "x"),
			datatest.Int("image/class/label", 1<<64-1, true)), []string{"label -1"}},
		{"a label out of proportion", datatest.Record(datatest.Bytes("image/encoded", "x"),
			datatest.Int("image/class/label", 1<<20-1, true)), []string{"label 1048574 among 1 image"}},
		{"two synsets", slices.Concat(whole, datatest.Record(datatest.Bytes("image/encoded", "x"),
			datatest.Int("image/class/label", 1, true),
			datatest.Bytes("image/class/synset", "n9"))), []string{"record 1", `"n9"`}},
		{"nothing", nil, []string{"no records"}},
		{"text", []byte("<html><body>404 not found</body></html>"), []string{"checksum"}},
	} {
		dir := t.TempDir()
		datatest.Write(t, dir, "train-00000-of-00001", c.content)
		_, _, err := openPlace(dir, nil)
		datatest.WantError(t, err, c.want...)
	}
	file := filepath.Join(t.TempDir(), "train.tfrecord")
	for size := 1; size < len(whole); size += 7 {
		datatest.Write(t, filepath.Dir(file), "train.tfrecord", whole[:size])
		_, err := openRecords([]string{file}, nil)
		datatest.WantError(t, err, "train.tfrecord", "cut short at offset")
	}
}
