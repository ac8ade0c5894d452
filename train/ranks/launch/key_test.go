package launch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"onlinerna/train/ranks"
)

// TestRanksKey takes the ranks' key from the variable, else from the file.
func TestRanksKey(t *testing.T) {
	t.Setenv(ranks.KeyVar, "")
	dir := t.TempDir()
	for name, content := range map[string]string{"good": "  s3cret\n", "empty": "\n", "long": strings.Repeat("x", 5000)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for file, want := range map[string]string{"good": "s3cret", "empty": "want a key", "long": "want a key",
		"none": "no such file", ".": "folder", "": ""} {
		path := ""
		if file != "" {
			path = filepath.Join(dir, file)
		}
		t.Setenv(ranks.KeyFileVar, path)
		key, err := ranksKey()
		if file == "good" || file == "" {
			if key != want || err != nil {
				t.Errorf("%s: %q, %v", file, key, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), ranks.KeyFileVar) {
			t.Errorf("%s: %q, %v", file, key, err)
		}
	}
	t.Setenv(ranks.KeyVar, "other")
	if key, err := ranksKey(); key != "other" || err != nil {
		t.Errorf("%q, %v", key, err)
	}
}
