package convex

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

// Small files that would take much memory are refused with the line.
func TestBudget(t *testing.T) {
	freeMemory = func() int64 { return 12 << 20 }
	t.Cleanup(func() { freeMemory = func() int64 { return 0 } })
	const many = 16 << 20
	rows := func(line string) string { return strings.Repeat(line, many/len(line)) }
	dir := t.TempDir()
	defer debug.SetGCPercent(debug.SetGCPercent(100)) // whatever GOGC says
	for name, c := range map[string]struct{ text, want string }{
		"columns.libsvm": {"1 1:1\n-1 2147483647:1\n", ":2: column 2147483647 in a file of 22 bytes"},
		"ones.data":      {"1\n1 2147483647\n", ":2: column 2147483647"},
		"pairs.data":     {"1:1\n2147483647:1\n", "column 2147483647"},
		"rows.csv":       {"1,0\n-1,1\n" + rows("1,0\n"), "up to here the data take more than 4"},
		"row.csv":        {"1,0\n" + strings.Repeat("0,", many/2), ":2: a row of more than 4 MiB"},
		"quoted.csv":     {"1,0\n\"" + strings.Repeat("\n", many), ":2: a row of more than 4 MiB"},
		"rows.libsvm":    {"1 1:0\n-1 1:1\n" + rows("1\n"), "up to here the data take more than 4"},
		"attributes.arff": {"@relation a\n" + rows("@attribute a real\n"),
			"up to here the data take more than 4"},
		"labels.csv": {rows("1\n"), "one column only"},
	} {
		path := filepath.Join(dir, name+".gz")
		if filepath.Ext(name) == ".data" {
			if err := os.WriteFile(filepath.Join(dir, strings.TrimSuffix(name, "data")+"labels"), []byte("1\n-1\n"),
				0o644); err != nil {
				t.Fatal(err)
			}
		}
		var b bytes.Buffer
		z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := z.Write([]byte(c.text)); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(z.Close(), os.WriteFile(path, b.Bytes(), 0o644)); err != nil {
			t.Fatal(err)
		}
		c.text = ""
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err = ReadFile(path, Logistic)
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
		if used := after.Sys - min(after.Sys, before.Sys); used > 300<<20 {
			t.Errorf("%s: %d MB for %d bytes", name, used>>20, b.Len())
		}
	}
}

// Many columns are allowed in a file that has as many bytes.
func TestManyColumns(t *testing.T) {
	text := "1 1:1 5000000:2 # " + strings.Repeat("x", 5_000_000) + "\n-1 2:1\n"
	if d, err := ReadLIBSVM(strings.NewReader(text), "f", Logistic); err != nil || d.X.d != 5_000_000 {
		t.Error(err)
	}
}

// Columns far beyond a small file's bytes are refused: vectors of that length would take hundreds of megabytes.
func TestFreeColumns(t *testing.T) {
	read := func(column int) error {
		_, err := ReadLIBSVM(strings.NewReader(fmt.Sprintf("1 %d:1\n-1 1:1\n", column)), "x", Logistic)
		return err
	}
	if err := read(1 << 20); err != nil {
		t.Error(err)
	}
	if err := read(1<<20 + 1); err == nil || !strings.Contains(err.Error(), "x:1: column 1048577 in a file of 19 bytes") {
		t.Error(err)
	}
}
