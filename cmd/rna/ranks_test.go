//go:build (mpi && linux) || gpu

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// epochs counts the epochs in a run's metrics.
func epochs(t *testing.T, dir string) int {
	b, _ := os.ReadFile(filepath.Join(dir, "metrics.jsonl"))
	return bytes.Count(b, []byte(`"kind":"epoch"`))
}

// wait waits until a run has n epochs, more than at the start.
func wait(t *testing.T, dir string, n, start int) {
	t.Helper()
	for from := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		if e := epochs(t, dir); e >= n && e > start {
			return
		}
		if time.Since(from) > time.Minute {
			t.Fatal("no epoch within a minute")
		}
	}
}

// child returns the process ID of rank 1 of a run in a folder.
func child(t *testing.T, dir string) int {
	t.Helper()
	pid := process(dir, 1)
	if pid == 0 {
		t.Fatal("rank 1 is not there")
	}
	return pid
}

// process returns the process ID of a rank of a run in a folder, 0 for none.
func process(dir string, rank int) int {
	list, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range list {
		b, _ := os.ReadFile(f)
		pid := filepath.Base(filepath.Dir(f))
		env, _ := os.ReadFile(filepath.Join(filepath.Dir(f), "environ"))
		if !bytes.HasPrefix(b, []byte(os.Args[0]+"\x00train")) || !bytes.Contains(b, []byte(dir)) {
			continue
		}
		for _, v := range []string{"OMPI_COMM_WORLD_RANK", "PMI_RANK", "RNA_RANK"} {
			if bytes.Contains(env, fmt.Appendf([]byte{0}, "%s=%d\x00", v, rank)) {
				n, _ := strconv.Atoi(pid)
				return n
			}
		}
	}
	return 0
}
