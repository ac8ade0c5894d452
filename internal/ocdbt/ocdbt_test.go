package ocdbt

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// edges is a database of TensorStore: a tree of four levels in files without compression.
const edges = "../../train/statedict/testdata/edges.orbax"

// keys are those that TensorStore lists.
var keys = strings.Fields(`a.bias/0 a.bias/1 a.bias/2 a.bias/zarr.json a.weight/.zarray a.weight/0/0 a.weight/0/1
	a.weight/1/0 a.weight/1/1 b.weight/c/0/0/0 b.weight/c/1/0/0 b.weight/zarr.json c.scale/.zarray c.scale/0
	d.table/.zarray d.table/0.0 d.table/0.1 d.table/1.0 d.table/1.1 d.table/2.0 d.table/2.1 steps/c steps/zarr.json`)

func TestRead(t *testing.T) {
	entries, err := Read(edges)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	inline := 0
	for _, e := range entries {
		got = append(got, e.Key)
		if e.File == "" {
			inline++
			if int64(len(e.Inline)) != e.Len {
				t.Errorf("%s: %d bytes of %d", e.Key, len(e.Inline), e.Len)
			}
		}
	}
	if !slices.Equal(got, keys) {
		t.Errorf("keys %q", got)
	}
	if inline == 0 || inline == len(entries) {
		t.Errorf("%d of %d values are inline", inline, len(entries))
	}
	i := slices.Index(got, "steps/c")
	if b := entries[i].Inline; len(b) != 8 || binary.LittleEndian.Uint64(b) != 12 {
		t.Errorf("steps: % x", b)
	}
}

func copyOf(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(edges)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// seal sets the checksum of a manifest or node.
func seal(b []byte) []byte {
	binary.LittleEndian.PutUint32(b[len(b)-4:], crc32.Checksum(b[:len(b)-4], castagnoli))
	return b
}

func manifest(t *testing.T, dir string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, ManifestName))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestFlips finds each flipped bit of a manifest by its checksum.
func TestFlips(t *testing.T) {
	dir := copyOf(t)
	whole := manifest(t, dir)
	for bit := range len(whole) * 8 {
		b := bytes.Clone(whole)
		b[bit/8] ^= 1 << (bit % 8)
		write(t, filepath.Join(dir, ManifestName), b)
		if _, err := Read(dir); err == nil {
			t.Errorf("bit %d flipped, and read", bit)
		}
	}
}

// TestPaths refuses data files that are not in the folder.
func TestPaths(t *testing.T) {
	dir := copyOf(t)
	whole := manifest(t, dir)
	for _, to := range []string{"../", "/tm", `..\`} {
		b := bytes.ReplaceAll(whole, []byte("d/"), []byte(to[:2]))
		if at := bytes.Index(whole, []byte("d/")); len(to) > 2 {
			b = bytes.Clone(whole)
			copy(b[at:], to)
		}
		write(t, filepath.Join(dir, ManifestName), seal(b))
		if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), "is not in the folder: refused") {
			t.Errorf("%q: %v", to, err)
		}
	}
}

// TestNumbered reads versions in a file of their own.
func TestNumbered(t *testing.T) {
	dir := copyOf(t)
	b := manifest(t, dir)
	write(t, filepath.Join(dir, "manifest.0000000000000011"), b)
	write(t, filepath.Join(dir, "manifest.0000000000000010"), b[:20])
	kind := bytes.Clone(b)
	if kind[30] != 0 { // behind the header of 14 bytes and the identifier
		t.Fatalf("% x", kind)
	}
	kind[30] = 1
	write(t, filepath.Join(dir, ManifestName), seal(kind))
	if entries, err := Read(dir); err != nil || len(entries) != len(keys) {
		t.Errorf("%d entries, %v", len(entries), err)
	}
}

// TestMutations damages manifests and nodes, and mends their checksums: each is read or refused, in bounded memory.
func TestMutations(t *testing.T) {
	rounds := 600
	if testing.Short() {
		rounds = 100
	}
	if os.Getenv("SOAK_FLIPS") != "" {
		rounds = 4000
	}
	r := rand.New(rand.NewPCG(5, 6))
	dir := copyOf(t)
	whole := manifest(t, dir)
	root, err := (&tree{dir: dir}).root()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, root.file)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	errs := map[string]int{}
	for i := range rounds {
		target, from := whole, 0
		if i%2 > 0 {
			target, from = data, int(root.off)
		}
		b := bytes.Clone(target)
		end := from + int(binary.LittleEndian.Uint64(b[from+4:]))
		for range 1 + r.IntN(3) {
			at := from + 12 + r.IntN(end-from-16)
			switch r.IntN(3) {
			case 0:
				b[at] ^= 1 << r.IntN(8)
			case 1:
				b[at] = byte(r.IntN(256))
			case 2:
				if at+9 < end-4 {
					binary.PutUvarint(b[at:], r.Uint64()>>(8+r.IntN(56)))
				}
			}
		}
		seal(b[from:end])
		write(t, filepath.Join(dir, ManifestName), whole)
		write(t, path, data)
		if i%2 > 0 {
			write(t, path, b)
		} else {
			write(t, filepath.Join(dir, ManifestName), b)
		}
		if _, err := Read(dir); err != nil {
			if strings.Contains(err.Error(), "\n") || len(err.Error()) > 1000 {
				t.Errorf("error of %d bytes: %.300q", len(err.Error()), err)
			}
			errs[err.Error()]++
		}
	}
	runtime.ReadMemStats(&after)
	if mb := (after.TotalAlloc - before.TotalAlloc) >> 20; mb > uint64(rounds) {
		t.Errorf("%d MB in %d rounds", mb, rounds)
	}
	if len(errs) < 20 {
		t.Errorf("only %d different errors", len(errs))
	}
}

// FuzzNode reads any bytes as the content of a manifest and of a node, behind a checksum that is right.
func FuzzNode(f *testing.F) {
	root, err := (&tree{dir: edges}).root()
	if err != nil {
		f.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(edges, root.file))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b[root.off+12 : root.off+root.n-4])
	if b, err = os.ReadFile(filepath.Join(edges, ManifestName)); err != nil {
		f.Fatal(err)
	}
	f.Add(b[12 : len(b)-4])
	sealed := func(magic uint32, body []byte) []byte {
		b := binary.BigEndian.AppendUint32(nil, magic)
		b = binary.LittleEndian.AppendUint64(b, uint64(len(body)+16))
		return seal(append(append(b, body...), 0, 0, 0, 0))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, ManifestName), sealed(manifestMagic, body), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(dir); err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%q", err)
		}
		if r, err := decode(sealed(nodeMagic, body), nodeMagic); err == nil {
			for height := range byte(2) {
				own := *r
				at := &tree{dir: dir, open: map[string]*os.File{}}
				if at.node(&own, ref{}, height, "") == nil && height == 0 && len(at.entries) == 0 {
					t.Error("a leaf without entries")
				}
			}
		}
	})
}
