package format

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"onlinerna/data/internal/datatest"
)

// tabled writes images and tables.
func tabled(t *testing.T, tables map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"images/a.jpg", "images/b, c.png", "images/d.jpg", "images/e.jpg"} {
		datatest.Write(t, dir, name, []byte("x"))
	}
	for name, content := range tables {
		datatest.Write(t, dir, name, []byte(content))
	}
	return dir
}

// Rows of files and classes, with and without a first line of names, and with further columns.
func TestTable(t *testing.T) {
	for name, c := range map[string]struct{ train, val string }{
		"plain": {"images/d.jpg,dog\nimages/a.jpg,cat\n\"images/b, c.png\",cat\n", "images/e.jpg,dog\n"},
		"named": {"file,label\nimages/d.jpg,dog\nimages/a.jpg,cat\n\"images/b, c.png\",cat\n", "path,class\nimages/e.jpg,dog\n"},
		"more columns, Windows": {"\ufeffid,Class,size,Image\r\n1,dog,3,images/d.jpg\r\n2, cat ,4,./images/a.jpg\r\n" +
			"3,cat,5,\"images/b, c.png\"\r\n", "file,label\nimages/e.jpg,dog\n"},
	} {
		dir := tabled(t, map[string]string{"train.csv": c.train, "val.csv": c.val})
		found, err := Find(dir, "")
		if err != nil || found.Train == nil || found.Eval == nil {
			t.Fatalf("%s: %+v, %v", name, found, err)
		}
		train, err := found.Train(nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := relative(t, train, dir); !slices.Equal(got, []string{"images/d.jpg", "images/a.jpg", "images/b, c.png"}) ||
			!slices.Equal(train.Classes(), []string{"cat", "dog"}) || train.Label(0) != 1 || train.Label(2) != 0 {
			t.Errorf("%s: %q of %q", name, got, train.Classes())
		}
		val, err := OpenEval(dir, train.Classes(), "")
		if err != nil || val.Len() != 1 || val.Label(0) != 1 {
			t.Errorf("%s: %v, %v", name, val, err)
		}
		if alone, err := OpenEval(filepath.Join(dir, "train.csv"), nil, ""); err != nil || alone.Len() != 3 {
			t.Errorf("%s: %v, %v", name, alone, err)
		}
		if b, err := train.(Encoded).Encoded(1, &Buffer{}); err != nil || string(b) != "x" {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
}

// labels.csv is a training set; class folders go before tables.
func TestTablePlaces(t *testing.T) {
	found, err := Find(tabled(t, map[string]string{"labels.csv": "images/a.jpg,cat\n"}), "")
	if err != nil || found.Train == nil || found.Eval != nil {
		t.Errorf("labels.csv: %+v, %v", found, err)
	}
	found, err = Find(tabled(t, map[string]string{"train.csv": "images/a.jpg,cat\n", "train/dog/1.jpg": "", "val/dog/2.jpg": "",
		"val.csv": "images/a.jpg,cat\n"}), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, open := range []Opener{found.Train, found.Eval} {
		if set, err := open(nil); err != nil || !slices.Equal(set.Classes(), []string{"dog"}) {
			t.Errorf("%v, %v", set, err)
		}
	}
}

// A mistake in a table is an error of one line, which names the table's line and the remedy.
func TestTableMistakes(t *testing.T) {
	for rows, want := range map[string]string{
		"images/a.jpg,cat\nimages/x.jpg,cat\n":       "line 2: there is no file",
		"images/a.jpg,cat\n\nimages/d.jpg,\n":        "line 3: images/d.jpg has no class: name it",
		"images/a.jpg,cat;dog\n":                     "line 1: images/a.jpg has several classes, cat;dog",
		"images/a.jpg,cat\nimages/./a.jpg,dog\n":     "line 2: images/./a.jpg is in line 1, too",
		"images/a.jpg\n":                             "line 1: 1 cell in place of 2",
		"images/a.jpg,cat\nimages/b, c.png,cat\n":    "line 2: 3 cells in place of 2: quote",
		"name,colour\nimages/a.jpg,red\n":            "line 1: want the columns file and label",
		"file,label\nimages/a.txt,cat\n":             `line 2: "images/a.txt" is no image`,
		"file,label\n":                               "no images: want a row",
		"":                                           "no images: want a row",
		"/images/a.jpg,cat\n":                        "line 1: /images/a.jpg: want a path relative",
		"images/a.jpg,cat\nimages/d.jpg,dog\n":       `line 2: class "dog" is not among the 2 known classes: correct`,
		"images/a.jpg,\"cat\nimages/d.jpg,\"dog\"\n": "train.csv: ",
	} {
		dir := tabled(t, map[string]string{"train.csv": rows})
		_, err := openTable(filepath.Join(dir, "train.csv"), []string{"ape", "cat"}, Classification)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want %q", rows, err, want)
		}
	}
}
