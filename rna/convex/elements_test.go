package convex

import (
	"bytes"
	"encoding/binary"
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
