package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Under every limit of the address space that is too small for a run, it ends with one line that says so; the folder
// then holds a run that goes on without the limit, or can be started. Where Go's runtime or a package does not start,
// below 0.8 GB and at some limits above, the runtime prints its own lines.
func TestAddressSpace(t *testing.T) {
	if out, err := exec.Command("sh", "-c", "ulimit -v 4000000 && ulimit -v").CombinedOutput(); err != nil {
		t.Skip(string(out))
	}
	run := func(limit int, args ...string) (string, error) {
		cmd := itself(args...)
		cmd.Args = append([]string{"sh", "-c", fmt.Sprintf(`ulimit -v %d && exec "$0" "$@"`, limit)}, cmd.Args...)
		cmd.Path = "/bin/sh"
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		cmd.WaitDelay = time.Minute
		err := cmd.Run()
		return stderr.String(), err
	}
	dir := t.TempDir()
	failed := 0
	for limit := 800_000; limit <= 1_800_000; limit += 100_000 {
		out := filepath.Join(dir, fmt.Sprint(limit))
		stderr, err := run(limit, "train", "--resume-or-start", "--model", "conv6", "--data", "glyphs", "--batch", "256",
			"--epochs", "1", "--limit-batches", "1", "--limit-val", "1", "--rna", "off", "-q", "-o", out)
		if err == nil {
			continue
		}
		starting := strings.Contains(stderr, "runtime.doInit(") || !strings.Contains(stderr, "onlinerna/")
		if starting && strings.Contains(stderr, "fatal error: ") && !strings.Contains(stderr, "main.main(") {
			t.Logf("limit of %d kB: Go's runtime or a package does not start", limit)
			continue
		}
		if strings.HasPrefix(stderr, "runtime/cgo: ") && strings.Contains(stderr, "pthread_create failed") {
			t.Logf("limit of %d kB: cgo ends the process, since it gets no thread", limit)
			continue
		}
		failed++
		lines := strings.Split(strings.TrimSpace(stderr), "\n")
		if last := lines[len(lines)-1]; strings.Contains(stderr, "fatal error: ") || !strings.Contains(last, "memory") &&
			!strings.Contains(last, "address space") {
			t.Errorf("limit of %d kB: %v, %d lines: %.2000s", limit, err, len(lines), stderr)
		}
		if _, err := os.Stat(out); err == nil && limit > 1_000_000 {
			mustRun(t, "train", "--resume-or-start", "--model", "conv6", "--data", "glyphs", "--batch", "256", "--epochs",
				"1", "--limit-batches", "1", "--limit-val", "1", "--rna", "off", "-q", "-o", out)
		}
	}
	if failed == 0 {
		t.Error("no limit was too small")
	}
	t.Logf("%d limits were too small", failed)
}
