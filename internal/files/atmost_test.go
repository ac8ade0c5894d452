package files

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadAtMost(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, []byte("four"), 0o600); err != nil {
		t.Fatal(err)
	}
	if b, err := ReadAtMost(path, 4); string(b) != "four" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	for _, path := range []string{path, "/dev/zero"} {
		if _, err := os.Stat(path); err != nil {
			continue
		}
		if _, err := ReadAtMost(path, 3); err == nil || !strings.Contains(err.Error(), path) ||
			!strings.Contains(err.Error(), "more than 3 bytes") {
			t.Errorf("%s: %v", path, err)
		}
	}
}
