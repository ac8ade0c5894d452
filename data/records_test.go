package data

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
)

// protoBytes is field number as a message or bytes.
func protoBytes(number int, content []byte) []byte {
	b := binary.AppendUvarint(nil, uint64(number<<3|wireBytes))
	b = binary.AppendUvarint(b, uint64(len(content)))
	return append(b, content...)
}

type feature struct {
	name  string
	value []byte // of the Feature
}

func bytesFeature(name, value string) feature {
	return feature{name, protoBytes(1, protoBytes(1, []byte(value)))}
}

func intFeature(name string, value uint64, packed bool) feature {
	b := binary.AppendUvarint(nil, value)
	if packed {
		b = protoBytes(1, b)
	} else {
		b = append([]byte{1<<3 | wireVarint}, b...)
	}
	return feature{name, protoBytes(3, b)}
}

// record is one record of a TFRecord file.
func record(features ...feature) []byte {
	var all []byte
	for _, f := range features {
		all = append(all, protoBytes(1, append(protoBytes(1, []byte(f.name)), protoBytes(2, f.value)...))...)
	}
	content := protoBytes(1, all)
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(content)))
	b = binary.LittleEndian.AppendUint32(b, masked(b))
	b = append(b, content...)
	return binary.LittleEndian.AppendUint32(b, masked(content))
}

// imageRecords are the training images as TensorFlow's scripts write them; label(i) is −1 for none.
func imageRecords(t testing.TB, label func(class int) int, synset bool) [][]byte {
	var list [][]byte
	for i, m := range trainPictures(t) {
		class := slices.Index(devkitClasses, m.name[:9])
		features := []feature{
			bytesFeature("image/filename", m.name), bytesFeature("image/encoded", string(m.content)),
			intFeature("image/height", 20, false), bytesFeature("image/format", "JPEG"),
		}
		if n := label(class); n >= 0 {
			features = append(features, intFeature("image/class/label", uint64(n), i%2 == 0))
		}
		if synset {
			features = append(features, bytesFeature("image/class/synset", m.name[:9]))
		}
		list = append(list, record(features...))
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
			write(t, dir, "train-00000-of-00002", slices.Concat(list[:3]...))
			write(t, dir, "train-00001-of-00002", slices.Concat(list[3:]...))
			write(t, dir, "validation-00000-of-00001", list[4])
			ds, val, err := Open(dir, Options{Classes: devkitClasses})
			if err != nil {
				t.Fatal(err)
			}
			closeAtEnd(t, ds, val)
			sameSets(t, ds, want)
			if notes := fmt.Sprint(Notes(ds)); c.note != "" {
				wantError(t, fmt.Errorf("%s", notes), c.note)
			} else if notes != "[]" {
				t.Errorf("notes %s", notes)
			}
			own, _, err := Open(dir, Options{})
			if err != nil {
				t.Fatal(err)
			}
			closeAtEnd(t, own)
			if wantNames := map[bool][]string{true: devkitClasses, false: numbered(3)}[c.synset]; !slices.Equal(own.Classes(), wantNames) {
				t.Errorf("classes %q, want %q", own.Classes(), wantNames)
			}
		})
	}
	dir := t.TempDir()
	write(t, dir, "imagenet-train.tfrecord-00001-of-00004", slices.Concat(imageRecords(t, fromOne, false)...))
	ds, _ := openBoth(t, dir)
	wantError(t, fmt.Errorf("%q", Notes(ds)), "1 of 4 files are here")
}

// A bit that changes anywhere in a record is found when its image is read.
func TestRecordChecksums(t *testing.T) {
	list := imageRecords(t, func(class int) int { return class + 1 }, false)
	good := slices.Concat(list...)
	file := filepath.Join(t.TempDir(), "train.tfrecord")
	var s Scratch
	found := 0
	for at := 12; at < len(list[0]); at += 13 {
		bad := slices.Clone(good)
		bad[at] ^= 1 << (at % 8)
		write(t, filepath.Dir(file), "train.tfrecord", bad)
		ds, err := openRecords([]string{file}, nil)
		if err != nil { // the bit is in the structure
			continue
		}
		closeAtEnd(t, ds)
		_, err = ds.Read(0, nil, &s)
		wantError(t, err, "train.tfrecord/record 0", "does not match its checksum")
		_, _, err = Encoded(ds, 0, &s)
		wantError(t, err, "checksum")
		if _, err := ds.Read(1, nil, &s); err != nil {
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
		{"no image", record(intFeature("image/class/label", 1, true)), []string{"record 0", "image/encoded"}},
		{"empty", record(), []string{"record 0", "image/encoded"}},
		{"negative label", record(bytesFeature("image/encoded", "x"), intFeature("image/class/label", 1<<64-1, true)), []string{"label -1"}},
		{"two synsets", slices.Concat(whole, record(bytesFeature("image/encoded", "x"), intFeature("image/class/label", 1, true),
			bytesFeature("image/class/synset", "n9"))), []string{"record 1", `"n9"`}},
		{"nothing", nil, []string{"no records"}},
		{"text", []byte("<html><body>404 not found</body></html>"), []string{"checksum"}},
	} {
		dir := t.TempDir()
		write(t, dir, "train-00000-of-00001", c.content)
		_, _, err := Open(dir, Options{})
		wantError(t, err, c.want...)
	}
	file := filepath.Join(t.TempDir(), "train.tfrecord")
	for size := 1; size < len(whole); size += 7 {
		write(t, filepath.Dir(file), "train.tfrecord", whole[:size])
		_, err := openRecords([]string{file}, nil)
		wantError(t, err, "train.tfrecord", "cut short at offset")
	}
}
