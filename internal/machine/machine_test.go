package machine

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

func TestField(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cpuinfo")
	if err := os.WriteFile(file, []byte("processor\t: 0\nmodel name\t: A: B\nmodel name\t: C\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := Field(file, "model name"); got != "A: B" {
		t.Errorf("%q", got)
	}
	if got := Field(file, "model"); got != "" {
		t.Errorf("%q", got)
	}
}

func TestThis(t *testing.T) {
	m := This()
	if m.System != runtime.GOOS+"/"+runtime.GOARCH || m.Cores < 1 || m.Go != runtime.Version() || m.Version == "" {
		t.Errorf("%+v", m)
	}
	if runtime.GOOS == "linux" && m.Memory < 1<<24 {
		t.Errorf("%d bytes of memory", m.Memory)
	}
}
