package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// rankVar makes this test program act as rna in its own process: it runs its arguments. argsVar adds arguments for one
// rank: "1 --seed 7".
const (
	rankVar = "RNA_TEST_RANK"
	argsVar = "RNA_TEST_ARGS"
)

func TestMain(m *testing.M) {
	if os.Getenv(rankVar) == "" {
		code := m.Run()
		atEnd()
		os.Exit(code)
	}
	args := os.Args[1:]
	if f := strings.Fields(os.Getenv(argsVar)); len(f) > 0 && (f[0] == os.Getenv("OMPI_COMM_WORLD_RANK") ||
		f[0] == os.Getenv("PMI_RANK")) {
		args = append(args, f[1:]...)
	}
	os.Args = append(os.Args[:1], args...)
	main()
}

// itself returns a command that runs rna in its own process.
func itself(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), rankVar+"=1")
	return cmd
}

// atEnd is called after all tests.
var atEnd = func() {}
