//go:build linux && amd64

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// The RAM disk is an archive as the kernel's initramfs documentation has it: heads of 110 characters, names and
// contents padded to four bytes, folders before their contents.
func TestRAMDisk(t *testing.T) {
	dir := t.TempDir()
	content := map[string]string{filepath.Join(dir, "test"): "12345",
		filepath.Join(dir, "testdata", "a", "b"): "123456", filepath.Join(dir, "testdata", "c"): ""}
	for name, text := range content {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("RNA_CPU", "avx2")
	t.Setenv("OTHER", "x")
	disk := filepath.Join(t.TempDir(), "ramdisk")
	if err := ramDisk(disk, dir, []string{filepath.Join(dir, "test"), "-v"}); err != nil {
		t.Fatal(err)
	}
	found := unpack(t, disk)
	for name, text := range content {
		if name == filepath.Join(dir, "test") {
			name = program
		}
		if got, ok := found[name]; !ok || got != text {
			t.Errorf("%s: %q, want %q", name, got, text)
		}
	}
	var j job
	if err := json.Unmarshal([]byte(found[jobFile]), &j); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(j.Args, []string{program, "-v"}) || j.Dir != dir || !slices.Contains(j.Env, "RNA_CPU=avx2") ||
		slices.Contains(j.Env, "OTHER=x") {
		t.Errorf("the job is %+v", j)
	}
	if found["/init"] == "" {
		t.Error("there is no first process")
	}
	if err := ramDisk(disk, dir, []string{filepath.Join(dir, "nothing")}); !os.IsNotExist(err) {
		t.Errorf("a program that is not there: %v", err)
	}
}

// unpack reads an archive's files.
func unpack(t *testing.T, name string) map[string]string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	files, folders := map[string]string{}, []string{"/"}
	numbers := map[uint64]bool{}
	for at := 0; ; {
		if at%4 != 0 || at+110 > len(data) || string(data[at:at+6]) != "070701" {
			t.Fatalf("no head at %d of %d bytes", at, len(data))
		}
		field := func(i int) uint64 {
			n, err := strconv.ParseUint(string(data[at+6+8*i:at+14+8*i]), 16, 32)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		number, mode, size, length := field(0), field(1), int(field(6)), int(field(11))
		path := string(data[at+110 : at+110+length])
		from := (at + 110 + length + 3) / 4 * 4
		text := string(data[from : from+size])
		if at = (from + size + 3) / 4 * 4; path == "TRAILER!!!\x00" {
			return files
		}
		if path[length-1] != 0 || numbers[number] {
			t.Fatalf("%q, number %d", path, number)
		}
		numbers[number] = true
		path = "/" + path[:length-1]
		if !slices.Contains(folders, filepath.Dir(path)) {
			t.Errorf("%s comes before its folder", path)
		}
		if mode>>12 == 4 {
			folders = append(folders, path)
			continue
		}
		files[path] = text
	}
}
