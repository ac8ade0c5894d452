package store

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"onlinerna/internal/checksum"
	"onlinerna/internal/files"
)

// FuzzManifest reads arbitrary manifests with a correct checksum: accepted manifests name only files of the folder, and
// verifying terminates.
func FuzzManifest(f *testing.F) {
	dir := f.TempDir()
	made, err := Write(filepath.Join(dir, "root"), 1, Manifest{Epoch: 1, Step: 2}, func(tmp string) error {
		return files.Write(filepath.Join(tmp, "a"), []byte("content"))
	}, nil)
	if err != nil {
		f.Fatal(err)
	}
	path := filepath.Join(made, manifestName)
	good, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(bytes.Replace(good, []byte(`"a"`), []byte(`"../a"`), 1))
	f.Add(bytes.Replace(good, []byte(`"bytes": 7`), []byte(`"bytes": -7`), 1))
	f.Fuzz(func(t *testing.T, b []byte) {
		if at := sumPlace(b); at >= 0 && len(b) >= at+len(checksum.Zeros) {
			copy(b[at:], checksum.Zeros)
			checksum.Seal(at, b)
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := Verify(made)
		if err != nil {
			return
		}
		for _, p := range m.Files {
			if p.Name != "a" || p.Bytes != 7 {
				t.Fatalf("verified with a file %+v", p)
			}
		}
	})
}
