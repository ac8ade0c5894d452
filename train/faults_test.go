package train

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"onlinerna/internal/files"
)

// A run in which the k-th file system call fails, for every k, ends with an error that names the file, or with normal
// results. The same command then resumes or starts it, and ends with equal bits.
func TestFaults(t *testing.T) {
	dir := t.TempDir()
	spec := func(out string) Spec {
		c := tiny(out)
		c.Epochs, c.StepsLimit, c.CheckpointSteps, c.CheckpointKeep = 2, 2, 1, 1
		return c
	}
	train := func(out string) error {
		dev := cpuDevice(t, 1)
		var r *Run
		there, err := Await(t.Context(), out, nil)
		switch {
		case err != nil:
			return err
		case there:
			r, err = Resume(out, Deps{Device: dev}, nil)
		default:
			r, err = New(spec(out), Deps{Device: dev})
		}
		if err != nil {
			return err
		}
		err = r.Train(context.Background())
		return errors.Join(err, r.Close())
	}
	ends := func(out string) []byte {
		t.Helper()
		b, err := os.ReadFile(filepath.Join(out, "final.safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	whole := filepath.Join(dir, "whole")
	calls := 0
	files.Fault = func(string, string) error { calls++; return nil }
	defer func() { files.Fault = nil }()
	if err := train(whole); err != nil {
		t.Fatal(err)
	}
	want := ends(whole)
	if calls < 100 {
		t.Fatalf("%d calls only", calls)
	}
	faults := []error{syscall.EIO, syscall.ENOSPC, syscall.EINTR, io.ErrShortWrite, syscall.ESTALE, syscall.EINVAL}
	every := 1
	if testing.Short() {
		every = 7
	}
	failed, last := 0, calls
	for k := 0; k < last; k += every {
		fault := faults[k%len(faults)]
		out := filepath.Join(dir, "run")
		n, place := 0, ""
		files.Fault = func(call, path string) error {
			if n++; n-1 == k {
				place = call + " " + path
				return fault
			}
			return nil
		}
		err := train(out)
		files.Fault = nil
		if err != nil {
			if failed++; !errors.Is(err, fault) || !strings.Contains(err.Error(), filepath.Base(out)) {
				t.Errorf("call %d, %s: %v in place of %v", k, place, err, fault)
			}
			if err := train(out); err != nil {
				t.Errorf("call %d, %s: %v: the run does not go on: %v", k, place, fault, err)
				os.RemoveAll(out)
				continue
			}
		}
		if !bytes.Equal(ends(out), want) {
			t.Errorf("call %d, %s: %v: other weights (%v)", k, place, fault, err)
		}
		list, _ := filepath.Glob(filepath.Join(out, ".*.????????"))
		if len(list) > 0 {
			t.Errorf("call %d, %s: left %v", k, place, list)
		}
		os.RemoveAll(out)
	}
	if failed == 0 {
		t.Error("no fault failed a run")
	}
	t.Logf("%d calls, %d of which failed a run", last, failed)
}
