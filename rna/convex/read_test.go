package convex

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The data of testdata/formats/make.py.
var (
	formatRows = [][]float64{{1, 0, 0, 2.5}, {0, 3, 0, 0}, {0, 0, 0, -1}, {4, 0, 5, 0}, {0, 0, 6, 0.5}, {7, 0, 0, 0}}
	formatY    = []float64{1, -1, -1, 1, 1, -1}
)

func checkFormat(t *testing.T, path string, d *Data, err error, sparse bool) {
	t.Helper()
	if err != nil {
		t.Error(err)
		return
	}
	n, dim := d.X.Dims()
	if n != 6 || dim != 4 || (d.X.index != nil) != sparse {
		t.Errorf("%s: %d×%d, sparse: %v", path, n, dim, d.X.index != nil)
		return
	}
	for i, row := range formatRows {
		got := make([]float64, 4)
		columns, values := d.X.Row(i)
		for k, v := range values {
			j := k
			if columns != nil {
				j = int(columns[k])
			}
			got[j] = v
		}
		for j := range row {
			if got[j] != row[j] || d.Y[i] != formatY[i] {
				t.Errorf("%s: row %d is %v with the target %v", path, i, got, d.Y[i])
				break
			}
		}
	}
}

func TestReadFile(t *testing.T) {
	for name, sparse := range map[string]bool{
		"dense.mat": false, "compressed.mat": false, "sparse.mat": true, "columns.mat": false,
		"sparsecolumns.mat": true, "alone.mat": true,
		"rows.data": false, "zipped.data.gz": false, "pairs.data": true,
	} {
		path := filepath.Join("testdata/formats", name)
		d, err := ReadFile(path, Logistic)
		checkFormat(t, path, d, err, sparse)
	}
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	header := "% a comment\n@relation 'a b'\n@attribute a numeric\n@ATTRIBUTE 'b c'  real\n@attribute class {no, " +
		"yes}\n@attribute c\tinteger\n@attribute d NUMERIC\n@data\n"
	dense := write("dense.arff", header+
		"1,0,yes,0,2.5\n0,3,no,0,0\n% more\n0, 0, no, 0, -1\n4,0,yes,5,0\n0,0,'yes',6,.5\n7,0,no,0,0\n")
	d, err := ReadFile(dense, Logistic)
	checkFormat(t, dense, d, err, false)
	if err == nil && d.Labels != [2]string{"no", "yes"} {
		t.Errorf("labels %q", d.Labels)
	}
	sparse := write("sparse.arff", header+
		"{0 1, 2 yes, 4 2.5}\n{1 3}\n{4 -1}\n{0 4,2 yes,3 5}\n{2 yes, 3 6, 4 .5}\n{0 7}\n")
	d, err = ReadFile(sparse, Logistic)
	checkFormat(t, sparse, d, err, true)
	// Columns that are 1 (Dorothea's), with targets of numbers.
	write("ones.labels", "1.5\n-2\n")
	d, err = ReadFile(write("ones.data", "1 3\n2 3 4\n"), Squares)
	if err != nil || d.Y[0] != 1.5 || d.X.dot(1, []float64{1, 10, 100, 1000}) != 1110 {
		t.Errorf("%v, %v", d, err)
	}
	// A nominal feature of two values.
	d, err = ReadFile(write("two.arff",
		"@attribute a {x,y}\n@attribute b numeric\n@attribute y numeric\n@data\ny,2,1\nx,3,-1\n"), Squares)
	if err != nil || d.X.dot(0, []float64{10, 1}) != 12 || d.X.dot(1, []float64{10, 1}) != 3 {
		t.Errorf("%v, %v", d, err)
	}
	// Rows without a feature that is not 0.
	d, err = ReadFile(write("zeros.txt", "1\n-1\n-1 2:0.5\n"), Logistic)
	if err != nil || len(d.Y) != 3 || d.X.dot(2, []float64{0, 10}) != 5 {
		t.Errorf("%v, %v", d, err)
	}
	write("short.labels", "1\n-1\n")
	for path, want := range map[string]string{
		write("empty.csv", ""): "empty.csv: an empty file: want " +
			"CSV with the label first, libsvm, ARFF, MATLAB",
		write("hdf.mat", "\x89HDF\r\n\x1a\n"): "of MATLAB 7.3: save it with -v7",
		write("x.zip", "PK\x03\x04...."):      "a zip archive",
		write("x.npy", "\x93NUMPY\x01\x00"):   "a NumPy array",
		write("x.bin", "ab\x00cd"):            "a binary file",
		write("x.xz", "\xfd7zXZ\x00"):         "compressed by bzip2, xz or zstd",
		write("x.txt", "1 2 3\n4 5 6\n"): "lines of columns that no comma " +
			"separates: want CSV",
		write("alone.data", "1 2\n3 4\n"): "no labels: want them, one a " +
			"line, in alone.labels or .targets beside it",
		write("short.data", "1 2\n3 4\n5 6\n"): "short.labels: 2 labels for 3 rows",
		write("nan.data", "1 nan\n"):           "nan.data:1: column 2 is nan",
		write("missing.arff", header+
			"1,?,yes,0,1\n"): `missing.arff:9: the value of attribute "b c" is missing`,
		write("unknown.arff", header+
			"1,0,?,0,1\n"): `unknown.arff:9: the value of attribute "class" is missing`,
		write("short.arff", header+
			"1,2\n"): "short.arff:9: 2 values for 5 attributes",
		write("string.arff",
			"@relation x\n@attribute a string\n"): `string.arff:2: attribute "a" is of type "string"`,
		write("three.arff", "@attribute a {x,y,z}\n@attribute b numeric\n@data\n"): `attribute "a" has 3 values`,
		write("none.arff", header):                 "no rows after @data",
		write("brace.arff", header+"{0 1\n"):       "closing brace",
		write("order.arff", header+"{3 1, 0 1}\n"): "after attribute 3",
		write("twice.arff", header+"{0 1, 0 1}\n"): "after attribute 0",
		write("cut.mat", "MATLAB 5.0 MAT-file"+strings.Repeat(" ", 105)+
			"\x00\x01IM\x0e\x00\x00\x00\x40\x00\x00\x00abc"): "cut.mat",
		filepath.Join(dir, "is-missing.csv"): "is-missing.csv",
	} {
		if _, err := ReadFile(path, Logistic); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}
