package convex

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"onlinerna/internal/mat"
)

// TestSparseVector: targets may be a sparse vector, as a row or as a column.
func TestSparseVector(t *testing.T) {
	column := &mat.Array{Class: mat.Sparse, Dims: []int{4, 1}, Real: []float64{5, -2}, Rows: []int{1, 3}, Columns: []int{0, 2}}
	row := &mat.Array{Class: mat.Sparse, Dims: []int{1, 4}, Real: []float64{5, -2}, Rows: []int{0, 0},
		Columns: []int{0, 0, 1, 1, 2}}
	for _, a := range []*mat.Array{column, row} {
		if got := elements(a); !slices.Equal(got, []float64{0, 5, 0, -2}) {
			t.Errorf("%v: %v", a.Dims, got)
		}
	}
}

// TestEmptyMatrix: a matrix without elements is none.
func TestEmptyMatrix(t *testing.T) {
	var body bytes.Buffer
	for _, x := range []any{
		uint32(6), uint32(8), uint32(6), uint32(0), // flags: double
		uint32(5), uint32(8), int32(0), int32(0), // dimensions
		uint32(1), uint32(1), [8]byte{'x'}, // name
		uint32(9), uint32(0), // no elements
	} {
		binary.Write(&body, binary.LittleEndian, x)
	}
	file := "MATLAB 5.0 MAT-file" + strings.Repeat(" ", 105) + "\x00\x01IM\x0e\x00\x00\x00" +
		string([]byte{byte(body.Len()), 0, 0, 0}) + body.String()
	path := filepath.Join(t.TempDir(), "empty.mat")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := ReadFile(path, Logistic)
	if err == nil || !strings.Contains(err.Error(), "no matrix of numbers among its variables (x)") {
		t.Error(err)
	}
}

// matFile is a MAT-file of level 5 with matrices of columns.
func matFile(t *testing.T, names string, columns ...[][]float64) string {
	t.Helper()
	file := bytes.NewBufferString("MATLAB 5.0 MAT-file" + strings.Repeat(" ", 105) + "\x00\x01IM")
	for i, c := range columns {
		var body bytes.Buffer
		for _, x := range []any{
			uint32(6), uint32(8), uint32(6), uint32(0), // flags: double
			uint32(5), uint32(8), int32(len(c[0])), int32(len(c)), // dimensions
			uint32(1), uint32(1), [8]byte{names[i]}, // name
			uint32(9), uint32(8 * len(c) * len(c[0])), slices.Concat(c...), // elements by columns
		} {
			binary.Write(&body, binary.LittleEndian, x)
		}
		binary.Write(file, binary.LittleEndian, []uint32{14, uint32(body.Len())})
		file.Write(body.Bytes())
	}
	path := filepath.Join(t.TempDir(), "file.mat")
	if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestOrderOfVariables: the targets come before the matrix or behind it. A vector longer than the matrix is taken for
// the features, with one column.
func TestOrderOfVariables(t *testing.T) {
	x, y := [][]float64{{1, 2, 3}, {10, 20, 30}}, [][]float64{{5, -2, 7}}
	for _, path := range []string{matFile(t, "xy", x, y), matFile(t, "yx", y, x)} {
		d, err := ReadFile(path, Squares)
		if err != nil {
			t.Fatal(err)
		}
		if n, width := d.X.Dims(); n != 3 || width != 2 || !slices.Equal(d.Y, y[0]) || d.X.dot(2, []float64{1, 100}) != 3003 {
			t.Errorf("%d×%d, %+v", n, width, d)
		}
	}
	if _, err := ReadFile(matFile(t, "xv", x, [][]float64{{1, 2, 3, 4, 5, 6, 7}}), Squares); err == nil ||
		!strings.Contains(err.Error(), "labels") {
		t.Errorf("a vector longer than the matrix: %v", err)
	}
}

// TestRowsOfNIPS: blank lines before the rows are none, and rows of more than 64 values are padded in memory.
func TestRowsOfNIPS(t *testing.T) {
	dir := t.TempDir()
	var rows strings.Builder
	for i := range 3 {
		for j := range 70 {
			fmt.Fprintf(&rows, "%d ", 100*i+j)
		}
		rows.WriteByte('\n')
	}
	for name, text := range map[string]string{"x.data": "\n \n" + rows.String(), "x.labels": "1\n-1\n1\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d, err := ReadFile(filepath.Join(dir, "x.data"), Logistic)
	if err != nil {
		t.Fatal(err)
	}
	if n, width := d.X.Dims(); n != 3 || width != 70 {
		t.Fatalf("%d×%d", n, width)
	}
	for i := range 3 {
		_, row := d.X.Row(i)
		for j, v := range row {
			if v != float64(100*i+j) {
				t.Fatalf("row %d, column %d: %v", i, j, v)
			}
		}
	}
}

func TestFieldsOfARFF(t *testing.T) {
	for text, want := range map[string][]string{"": nil, "  ": nil, "1": {"1"}, "1, 2 ,": {"1", "2", ""},
		`'a,b',"c" , d`: {"a,b", "c", "d"}} {
		if got, err := arffFields(text); err != nil || !slices.Equal(got, want) || (got == nil) != (want == nil) {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	if _, err := arffFields("'a"); err == nil {
		t.Error("a quote without an end")
	}
}
