//go:build unix

package main

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"
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

// No command waits for the writer of a named pipe in place of a file of a run.
func TestPipesInRuns(t *testing.T) {
	whole := filepath.Join(t.TempDir(), "run")
	options := []string{"--ema", "3", "--limit-batches", "1", "--limit-val", "1", "--keep-every", "1", "--quiet"}
	mustRun(t, append([]string{"train", "--out", whole, "--epochs", "3", "--rna-start", "1"}, options...)...)
	var list []string
	err := filepath.WalkDir(whole, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			path, err = filepath.Rel(whole, path)
			list = append(list, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{} // by name without digits
	for _, name := range slices.Backward(list) {
		kind := strings.Map(func(r rune) rune {
			if unicode.IsDigit(r) {
				return -1
			}
			return r
		}, name)
		if seen[kind] {
			continue
		}
		seen[kind] = true
		t.Run(strings.ReplaceAll(name, "/", " "), func(t *testing.T) {
			t.Parallel()
			for _, args := range [][]string{
				{"train", "--epochs", "4", "--quiet", "--resume"}, {"verify"}, {"runs"}, {"compare", whole}, {"report"},
				{"replay"}, {"eval"}, {"export-metrics", "--to", "csv"},
			} {
				run := filepath.Join(t.TempDir(), "run")
				path := filepath.Join(run, name)
				if err := os.CopyFS(run, os.DirFS(whole)); err != nil {
					t.Fatal(err)
				}
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
				if err := syscall.Mkfifo(path, 0o600); err != nil {
					t.Skip(err)
				}
				c := itself(append(args, run)...)
				c.Dir = t.TempDir()
				end := time.AfterFunc(time.Minute, func() { c.Process.Kill() })
				out, err := c.CombinedOutput()
				if !end.Stop() {
					t.Errorf("%v waits: %s", args, out)
				}
				t.Logf("%v: %v: %.200s", args, err, out)
			}
		})
	}
}
