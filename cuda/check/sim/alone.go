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

// Environment variables of a test in its own process.
const (
	aloneVariable  = "ONLINERNA_TEST_ALONE"  // the test's name
	folderVariable = "ONLINERNA_TEST_FOLDER" // Alone's dir
)

// Alone runs f, the end of a test, in a separate process, because a GPU that is lost stays lost for its process. There
// the test runs from its start up to f, with [Apart] true, and f gets the same folder dir. In this process the test
// then continues. environ adds "NAME=value" variables.
func Alone(t *testing.T, dir string, f func(dir string), environ ...string) {
	t.Helper()
	if os.Getenv(aloneVariable) == t.Name() {
		f(os.Getenv(folderVariable))
		t.SkipNow() // the other process does the rest
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

// Apart reports whether this is the process that [Alone] started for the test or one of its subtests.
func Apart(t *testing.T) bool {
	return strings.HasPrefix(os.Getenv(aloneVariable)+"/", t.Name()+"/")
}
