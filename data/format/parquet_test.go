package format

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"onlinerna/data/internal/datatest"
)

func parquetPlace(name string) string { return filepath.Join("testdata", "parquet", name) }

// Whatever the coding, the files hold the samples of same.tar: see testdata/parquet.py.
func TestParquet(t *testing.T) {
	same, err := OpenEval(parquetPlace("same.tar"), nil, "")
	if err != nil {
		t.Fatal(err)
	}
	datatest.Close(t, same)
	sorted := slices.Sorted(slices.Values(same.Classes()))
	for _, c := range []struct {
		name    string
		classes []string // given
		want    []string
		note    string
	}{
		{"plain", nil, same.Classes(), ""},
		{"snappy", nil, same.Classes(),
			"12 of 12 images lie in pages that are compressed, have a dictionary or a checksum"},
		{"zstd", nil, same.Classes(), "compressed"},
		{"gzip", nil, same.Classes(), "compressed"},
		{"v2", nil, same.Classes(), ""},
		{"unnamed", nil, []string{"0", "1", "2"}, "compressed"},
		{"unnamed", same.Classes(), same.Classes(), "compressed"},
		{"names", same.Classes(), same.Classes(), ""},
		{"names", nil, sorted, ""},
		{"crc", nil, same.Classes(), "checksum"},
		{"crc-snappy", nil, same.Classes(), "checksum"},
		{"required", nil, []string{"0", "1", "2"}, ""},
		{"plain", []string{"shark", "goldfish", "tench", "x"}, []string{"shark", "goldfish", "tench", "x"}, ""},
		{"plain", devkitClasses, devkitClasses, "none of the 3 class names is known"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ds, val, err := openPlace(parquetPlace(c.name), c.classes)
			if err != nil {
				t.Fatal(err)
			}
			datatest.Close(t, ds)
			if (val != nil) != (c.name == "plain") || val != nil && val.Len() != 3 {
				t.Errorf("validation set %v", val)
			}
			if !slices.Equal(ds.Classes(), c.want) {
				t.Errorf("classes %q, want %q", ds.Classes(), c.want)
			}
			if notes := fmt.Sprint(notesOf(ds)); c.note == "" && notes != "[]" ||
				!bytes.Contains([]byte(notes), []byte(c.note)) {
				t.Errorf("notes %s, want %q", notes, c.note)
			}
			if ds.Len() != same.Len() {
				t.Fatalf("%d images, want %d", ds.Len(), same.Len())
			}
			var s, other Buffer
			for _, i := range []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 3, 11, 0} {
				img, err := decode(ds, i, &s)
				if err != nil {
					t.Fatal(err)
				}
				want, err := decode(same, i, &other)
				if err != nil {
					t.Fatal(err)
				}
				name, wantName := ds.Classes()[ds.Label(i)], same.Classes()[same.Label(i)]
				if c.note == "none of the 3 class names is known" || slices.Equal(ds.Classes(), numbered(3)) {
					name = same.Classes()[ds.Label(i)]
				}
				if !bytes.Equal(img.Pix, want.Pix) || name != wantName {
					t.Errorf("%s: class %s, want %s, or other pixels", ds.Name(i), name, wantName)
				}
			}
		})
	}
}

func TestParquetMissingImage(t *testing.T) {
	ds, _ := openBoth(t, parquetPlace("nulls"))
	var s Buffer
	for i := range ds.Len() {
		if _, err := decode(ds, i, &s); (err != nil) != (i == 3) {
			t.Errorf("%s: error %v", ds.Name(i), err)
		}
	}
}

func TestParquetErrors(t *testing.T) {
	for name, mentions := range map[string][]string{
		"brotli":     {"train.parquet", "codec 4", "snappy, gzip and zstd"},
		"other":      {"train.parquet", "image.bytes", "text (bytes)", "y (of another type)"},
		"unlabelled": {"train.parquet", "label -1 of row 0"},
		"null-label": {"train.parquet", "label of row 1", "missing"},
	} {
		_, _, err := openPlace(parquetPlace(name), nil)
		datatest.WantError(t, err, mentions...)
	}
	ds, _ := openBoth(t, parquetPlace("delta"))
	_, err := decode(ds, 0, new(Buffer))
	datatest.WantError(t, err, "encoding 7", "PLAIN")
	_, _, err = openPlace(parquetPlace("plain"), []string{"tench", "goldfish"})
	datatest.WantError(t, err, "shark")
	// Cut anywhere.
	whole, err := os.ReadFile(filepath.Join(parquetPlace("zstd"), "train.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "train.parquet")
	for size := 0; size < len(whole); size += 37 {
		if err := os.WriteFile(file, whole[:size], 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := openParquet([]string{file}, nil)
		datatest.WantError(t, err, "train.parquet", "not a parquet file, or cut short")
	}
}

// A flipped bit in an image of a page with a checksum is found.
func TestParquetChecksums(t *testing.T) {
	whole, err := os.ReadFile(filepath.Join(parquetPlace("crc"), "train.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "train.parquet")
	read := func(content []byte) (b []byte, err error) {
		if err := os.WriteFile(file, content, 0o644); err != nil {
			t.Fatal(err)
		}
		ds, err := openParquet([]string{file}, nil)
		if err != nil {
			t.Fatal(err)
		}
		datatest.Close(t, ds)
		b, err = ds.(Encoded).Encoded(2, new(Buffer))
		return b, err
	}
	image, err := read(whole)
	from := bytes.Index(whole, image)
	if err != nil || from < 0 {
		t.Fatal(from, err)
	}
	for at := from; at < from+len(image); at += 17 {
		bad := bytes.Clone(whole)
		bad[at] ^= 1 << (at % 8)
		_, err := read(bad)
		datatest.WantError(t, err, "train.parquet/row 2", "checksum")
	}
}

// readAll reads every image of a set; errors must name the image.
func readAll(t testing.TB, ds Set) {
	var s Buffer
	for i := range ds.Len() {
		if label := ds.Label(i); label < 0 || label >= len(ds.Classes()) {
			t.Fatalf("%s: label %d of %d classes", ds.Name(i), label, len(ds.Classes()))
		}
		if _, err := decode(ds, i, &s); err != nil && !bytes.Contains([]byte(err.Error()), []byte(ds.Name(i))) {
			t.Fatalf("error %q does not name %s", err, ds.Name(i))
		}
	}
	if err := closeSet(ds); err != nil && !errors.Is(err, os.ErrClosed) {
		t.Fatal(err)
	}
}
