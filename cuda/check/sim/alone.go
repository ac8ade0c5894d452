//go:build gpu && cgo

package sim

import (
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// What a test finds in a process of its own.
const (
	aloneVariable  = "ONLINERNA_TEST_ALONE"  // its name
	folderVariable = "ONLINERNA_TEST_FOLDER" // Alone's dir
)

// Alone runs f, the end of a test, in a process of its own, since a GPU that is lost stays lost for its process. There the test runs from its
// beginning up to f, with [Apart] true, and f is given the same folder dir. In this process the test then goes on. Environment variables may be added, as "NAME=value".
func Alone(t *testing.T, dir string, f func(dir string), environ ...string) {
	t.Helper()
	if os.Getenv(aloneVariable) == t.Name() {
		f(os.Getenv(folderVariable))
		t.SkipNow() // the rest is the other process's
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var parts []string
	for _, part := range strings.Split(t.Name(), "/") {
		parts = append(parts, "^"+regexp.QuoteMeta(part)+"$")
	}
	cmd := exec.CommandContext(t.Context(), exe, "-test.run", strings.Join(parts, "/"), "-test.v")
	cmd.Env = append(append(os.Environ(), aloneVariable+"="+t.Name(), folderVariable+"="+dir), environ...)
	out, err := cmd.CombinedOutput()
	if errors.As(err, new(*exec.ExitError)) || err == nil && !strings.Contains(string(out), "--- SKIP: "+t.Name()) {
		t.Fatalf("in a process of its own: %v\n%s", err, out)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Apart says whether this is the process that [Alone] started for the test, or for one of its subtests.
func Apart(t *testing.T) bool {
	return strings.HasPrefix(os.Getenv(aloneVariable)+"/", t.Name()+"/")
}
