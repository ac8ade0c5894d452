//go:build unix

package launch

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The ranks' socket can be made also where the folder of temporary files has a long name.
func TestNewSocket(t *testing.T) {
	long := filepath.Join(t.TempDir(), strings.Repeat("long", 25))
	if err := os.Mkdir(long, 0o755); err != nil {
		t.Fatal(err)
	}
	short := os.TempDir()
	for _, dir := range []string{short, long} {
		t.Setenv("TMPDIR", dir)
		path, remove, err := newSocket()
		if err != nil {
			t.Fatal(err)
		}
		if in := strings.HasPrefix(path, dir+"/"); in != (dir == short) {
			t.Errorf("%s for %s", path, dir)
		}
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Error(err)
		} else if err := l.Close(); err != nil {
			t.Error(err)
		}
		if err := remove(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(filepath.Dir(path)); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", filepath.Dir(path), err)
		}
	}
	if left, err := os.ReadDir(long); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}
