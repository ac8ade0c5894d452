package format

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// rowsOf writes the targets of a set's images.
func rowsOf(set Set) string {
	var list []string
	row := make([]float64, len(set.Classes()))
	for i := range set.Len() {
		set.(Targeted).Targets(i, row)
		list = append(list, strings.Trim(fmt.Sprint(row), "[]"))
	}
	return strings.Join(list, ", ")
}

// Cells of several classes make a set multi-label, in which an image may have none; so does the task of the training
// set.
func TestTableOfSeveralClasses(t *testing.T) {
	dir := tabled(t, map[string]string{"train.csv": "images/d.jpg,dog;cat\nimages/a.jpg,\n\"images/b, c.png\",cat; cat;\n",
		"val.csv": "images/e.jpg,cat\nimages/a.jpg,\n", "bad.csv": "images/a.jpg,cat\nimages/e.jpg,cat;ape\n"})
	set, err := openTable(filepath.Join(dir, "train.csv"), nil, "")
	if err != nil || !slices.Equal(set.Classes(), []string{"cat", "dog"}) || rowsOf(set) != "1 1, 0 0, 1 0" || set.Label(0) != -1 ||
		set.(Targeted).Task() != MultiLabel {
		t.Fatalf("%v: %v", set, err)
	}
	val, err := openTable(filepath.Join(dir, "val.csv"), set.Classes(), MultiLabel)
	if err != nil || rowsOf(val) != "1 0, 0 0" {
		t.Errorf("%v, %v", val, err)
	}
	if _, err := openTable(filepath.Join(dir, "bad.csv"), set.Classes(), ""); err == nil ||
		!strings.Contains(err.Error(), `bad.csv, line 2: class "ape" is not among the 2 known classes: correct`) {
		t.Error(err)
	}
}

// The columns of numbers are a regression's, or those of them that are named.
func TestTableOfNumbers(t *testing.T) {
	dir := tabled(t, map[string]string{"train.csv": "age,File,height\n3,images/d.jpg,-1.5\n4e1,images/a.jpg, 2\n",
		"plain.csv": "images/d.jpg,7\n"})
	path := filepath.Join(dir, "train.csv")
	for _, c := range []struct {
		names []string
		want  string
	}{{nil, "3 -1.5, 40 2"}, {[]string{"height"}, "-1.5, 2"}, {[]string{"height", "age"}, "-1.5 3, 2 40"}} {
		set, err := openTable(path, c.names, Regression)
		if err != nil || rowsOf(set) != c.want {
			t.Errorf("%q: %v, %v", c.names, set, err)
		}
	}
	plain, err := openTable(filepath.Join(dir, "plain.csv"), nil, Regression)
	if err != nil || rowsOf(plain) != "7" || plain.Classes()[0] != "target 1" {
		t.Errorf("%v, %v", plain, err)
	}
	for rows, want := range map[string]string{
		"file,age\nimages/a.jpg,x\n":   `line 2: images/a.jpg: age is "x": want a finite number`,
		"file,age\nimages/a.jpg,NaN\n": "want a finite number",
		"file,age\nimages/a.jpg,\n":    "want a finite number",
		"file\nimages/a.jpg\n":         "want a column of numbers",
		"age,b\n1,images/a.jpg\n":      "want a column file",
		"file,age\nimages/x.jpg,1\n":   "there is no file",
		"file,b\nimages/a.jpg,1\n":     "there is no column age: found b",
	} {
		dir := tabled(t, map[string]string{"train.csv": rows})
		names := map[bool][]string{true: {"age"}}[strings.HasPrefix(rows, "file,b")]
		_, err := openTable(filepath.Join(dir, "train.csv"), names, Regression)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want %q", rows, err, want)
		}
	}
}

// Lists of labels as pyarrow writes them, of numbers and of names.
func TestParquetLists(t *testing.T) {
	const want = "0 0 1, 1 0 1, 1 1 0, 0 1 0, 0 0 0, 1 0 1, 0 0 1, 0 1 1, 1 0 0, 0 1 0, 1 1 0, 0 1 1"
	for _, place := range []string{"lists", "lists-v2", "lists-required", "lists-names"} {
		set, err := OpenEval(filepath.Join(parquetPlace(place), "train.parquet"), nil, "")
		if err != nil {
			t.Fatal(err)
		}
		if names := []string{"tench", "goldfish", "shark"}; place == "lists-names" { // sorted
			set, err = OpenEval(filepath.Join(parquetPlace(place), "train.parquet"), names, "")
			if err != nil || !slices.Equal(set.Classes(), names) {
				t.Fatal(set, err)
			}
		} else if !slices.Equal(set.Classes(), names) {
			t.Errorf("%s: %q", place, set.Classes())
		}
		if got := rowsOf(set); got != want {
			t.Errorf("%s: %s", place, got)
		}
		if b, err := set.(Encoded).Encoded(11, &Buffer{}); err != nil || len(b) < 100 {
			t.Errorf("%s: %d bytes, %v", place, len(b), err)
		}
	}
}
