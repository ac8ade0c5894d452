//go:build unix

package main

import (
	"net"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// Named pipes, sockets and devices in place of weights or images are errors; rna does not wait for a writer.
func TestPipesAreRefused(t *testing.T) {
	dir := t.TempDir()
	pipe, socket := filepath.Join(dir, "pipe.jpg"), filepath.Join(dir, "socket.jpg")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Skip(err)
	}
	defer l.Close()
	run := filepath.Join(dir, "run")
	mustRun(t, "train", "--out", run, "--epochs", "1", "--limit-batches", "1", "--limit-val", "1", "--rna", "off",
		"--quiet")
	weights := filepath.Join(run, "final.safetensors")
	for _, path := range []string{pipe, socket, "/dev/zero"} {
		for _, args := range [][]string{
			{"inspect", path}, {"predict", path, "--weights", weights}, {"predict", run, "--weights", path},
			{"eval", "--weights", path},
			{"convert", path, filepath.Join(dir, "out.pt")}, {"train", "--init", path, "--out", filepath.Join(dir, "other")},
			{"verify", path},
			{"extrapolate", "--out", filepath.Join(dir, "out.safetensors"), weights, path},
		} {
			status, stdout, stderr := runRNA(t, args...)
			said := stdout + stderr
			refused := slices.ContainsFunc([]string{"no regular file", "no such device", "operation not supported"},
				func(why string) bool { return strings.Contains(said, why) })
			if status != 1 || !strings.Contains(said, path) || !refused {
				t.Errorf("%v: status %d, %s", args, status, said)
			}
		}
	}
}
