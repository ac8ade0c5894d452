package statedict

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"onlinerna/internal/ocdbt"
)

// replace replaces text in a file.
func replace(t *testing.T, path, from, to string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(b, []byte(from)) {
		t.Fatalf("%s is not in %s", from, path)
	}
	if err := os.WriteFile(path, bytes.Replace(b, []byte(from), []byte(to), 1), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestBadZarr opens arrays whose metadata are false, or that lack chunks.
func TestBadZarr(t *testing.T) {
	for _, c := range []struct{ file, from, to, want string }{
		{"d.table/.zarray", `"zstd"`, `"blosc"`, `tensor "d.table": it is compressed by "blosc": zstd, gzip, zlib are read`},
		{"d.table/.zarray", `[10,4]`, `[10,5]`, "d.table/0.2 is missing"},
		{"d.table/.zarray", `[10,4]`, `[40]`, "chunks of shape"},
		{"d.table/.zarray", `[10,4]`, `[10,-4]`, "negative extent"},
		{"d.table/.zarray", `<f2`, `>f2`, `elements of type ">f2": little-endian numbers are read`},
		{"d.table/.zarray", `<f2`, `<f4`, "bytes or more of numbers, want"},
		{"d.table/.zarray", `"filters":null`, `"filters":[{}]`, "save it without filters"},
		{"d.table/.zarray", `"zarr_format":2`, `"zarr_format":3`, "format 3: 2 is read"},
		{"d.table/.zarray", `{`, ``, ".zarray: "},
		{"d.table/1.0", "\x28\xb5\x2f\xfd", "XXXX", "d.table/1.0"},
	} {
		dir := copyFolder(t, "folders.orbax")
		replace(t, filepath.Join(dir, c.file), c.from, c.to)
		refused(t, dir, c.want)
	}
	dir := copyFolder(t, "folders.orbax")
	if err := os.Remove(filepath.Join(dir, "a.bias/0")); err != nil {
		t.Fatal(err)
	}
	refused(t, dir, `tensor "a.bias": a.bias/0 is missing`)
}

// TestShardIndex flips each bit of the index of a shard's chunks.
func TestShardIndex(t *testing.T) {
	dir := copyFolder(t, "edges.orbax")
	entries, err := ocdbt.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(entries, func(e ocdbt.Entry) bool { return e.Key == "b.weight/c/0/0/0" })
	e := entries[i]
	path := filepath.Join(dir, e.File)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for bit := range 8 * (3*2*16 + 4) { // two numbers for each of 3 × 1 × 2 chunks, and the checksum
		b[e.Off+int64(bit/8)] ^= 1 << (bit % 8)
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		refused(t, dir, "the checksum of its index differs")
		b[e.Off+int64(bit/8)] ^= 1 << (bit % 8)
	}
}

// TestOrbaxFolders opens steps of several items, unfinished checkpoints and single parts of a tree.
func TestOrbaxFolders(t *testing.T) {
	step := t.TempDir()
	for _, item := range []string{"params", "metadata", "ocdbt.process_0"} {
		if err := os.CopyFS(filepath.Join(step, item), os.DirFS("testdata/plain.orbax")); err != nil {
			t.Fatal(err)
		}
	}
	refused(t, step, "holds several items of Orbax: name one: ")
	if err := os.RemoveAll(filepath.Join(step, "metadata")); err != nil {
		t.Fatal(err)
	}
	if f := open(t, step, ""); len(f.Tensors) != 6 || f.Path != step {
		t.Errorf("%d tensors in %s", len(f.Tensors), f.Path)
	}
	odd := filepath.Join(t.TempDir(), "[a-") // a pattern that matches nothing
	if err := os.CopyFS(odd, os.DirFS("testdata/folders.orbax")); err != nil {
		t.Fatal(err)
	}
	if f := open(t, odd, ""); len(f.Tensors) != 6 {
		t.Errorf("%d tensors", len(f.Tensors))
	}
	link := filepath.Join(t.TempDir(), "latest")
	if err := os.Symlink(odd, link); err != nil {
		t.Skip(err)
	}
	if f := open(t, link, ""); len(f.Tensors) != 6 {
		t.Errorf("%d tensors behind a link", len(f.Tensors))
	}
	chunk := filepath.Join(odd, "b.weight", "0.0.0")
	if err := os.Symlink(filepath.Join(odd, "gone"), filepath.Join(odd, "b.weight", "notes")); err != nil {
		t.Fatal(err)
	}
	if f := open(t, odd, ""); len(f.Tensors) != 6 {
		t.Errorf("%d tensors beside a broken link", len(f.Tensors))
	}
	meta := filepath.Join(odd, "b.weight", ".zarray")
	for name, want := range map[string]string{chunk: "0.0.0 is missing", meta: ".zarray: no such file"} {
		if err := os.Rename(name, name+"-old"); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("gone", name); err != nil {
			t.Fatal(err)
		}
		refused(t, odd, want)
		if err := os.Rename(name+"-old", name); err != nil {
			t.Fatal(err)
		}
	}
	part := open(t, "testdata/plain.orbax", "a")
	if len(part.Tensors) != 2 || part.Tensors[0].Name != "bias" || part.Tensors[1].Name != "weight" || part.Key != "a" {
		t.Errorf("under a: %v", part.Tensors)
	}
	if _, err := Open("testdata/plain.orbax", "ema"); err == nil ||
		!strings.Contains(err.Error(), `there is no key "ema": there are ["a" "b" "c" "d" "opt_state" "steps"]`) {
		t.Error(err)
	}
	if _, err := Open("testdata/plain.orbax", "opt_state"); err == nil ||
		!strings.Contains(err.Error(), "the state of an optimiser alone, 1 tensor") {
		t.Error(err)
	}
	if err := os.Remove(filepath.Join(step, "params/manifest.ocdbt")); err != nil {
		t.Fatal(err)
	}
	refused(t, filepath.Join(step, "params"), "is a folder, not a file")
	if err := os.WriteFile(filepath.Join(step, "params/_METADATA"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	refused(t, step, "the checkpoint was not finished")
}

// TestOrbaxChanged finds a database that is written anew while it is read.
func TestOrbaxChanged(t *testing.T) {
	dir := copyFolder(t, "plain.orbax")
	f := open(t, dir, "")
	if !slices.ContainsFunc(f.infos, func(i os.FileInfo) bool { return i.Name() == "manifest.ocdbt" }) {
		t.Error("the manifest is not among the files")
	}
	path := filepath.Join(dir, "manifest.ocdbt")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+"2", b, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+"2", path); err != nil {
		t.Fatal(err)
	}
	if err := f.Unchanged(); err == nil || !strings.Contains(err.Error(), "was changed while it was read") {
		t.Error(err)
	}
}
