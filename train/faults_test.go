package train

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"onlinerna/internal/files"
	"onlinerna/internal/text"
	"onlinerna/train/ranks"
	"onlinerna/train/ranks/rankstest"
)

// A run in which the k-th file system call fails, for every k, ends with an error that names the file, or with normal
// results. The same command then resumes or starts it, and ends with equal bits: one process, and ranks that write
// checkpoints in shares.
func TestFaults(t *testing.T) {
	for _, n := range []int{1, 2} {
		t.Run(text.Count(n, "rank"), func(t *testing.T) {
			if n > 1 && os.Getenv("SOAK_KILLS") == "" {
				t.Skip("make check-soak has it: it takes minutes")
			}
			sweepFaults(t, n)
		})
	}
}

func sweepFaults(t *testing.T, n int) {
	dir := t.TempDir()
	spec := func(out string) Spec {
		c := tiny(out)
		c.Epochs, c.StepsLimit, c.CheckpointSteps, c.CheckpointKeep = 2, 2, 1, 1
		return c
	}
	rank := func(out string, g *ranks.Group) error {
		dev, err := cpuOne()
		if err != nil {
			return err
		}
		defer dev.(io.Closer).Close()
		d := Deps{Device: dev, Ranks: g}
		there := false
		if g.First() {
			there, err = Await(t.Context(), out, nil)
		}
		if err = errors.Join(g.Together(err), g.Share(&there)); err != nil {
			return err
		}
		var r *Run
		if there {
			r, err = Resume(out, d, nil)
		} else {
			r, err = New(spec(out), d)
		}
		if err != nil {
			return err
		}
		err = r.Train(context.Background())
		return errors.Join(err, r.Close())
	}
	train := func(out string) error {
		if n == 1 {
			return rank(out, nil)
		}
		errs := rankstest.Errors(t, n, time.Minute, func(g *ranks.Group) error { return rank(out, g) })
		for _, err := range errs {
			if (err == nil) != (errs[0] == nil) || errors.Is(err, ranks.ErrTimeout) {
				t.Errorf("the ranks end with %v", errs)
			}
		}
		return errors.Join(errs...)
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
	var calls atomic.Int64
	files.Fault = func(string, string) error { calls.Add(1); return nil }
	defer func() { files.Fault = nil }()
	if err := train(whole); err != nil {
		t.Fatal(err)
	}
	want := ends(whole)
	last := calls.Load()
	if last < 100 {
		t.Fatalf("%d calls only", last)
	}
	faults := []error{syscall.EIO, syscall.ENOSPC, syscall.EINTR, io.ErrShortWrite, syscall.ESTALE, syscall.EINVAL}
	every := int64(1)
	if testing.Short() {
		every = 7
	}
	failed := 0
	for k := int64(0); k < last; k += every {
		fault := faults[k%int64(len(faults))]
		out := filepath.Join(dir, "run")
		place := ""
		calls.Store(0)
		files.Fault = func(call, path string) error {
			if calls.Add(1)-1 == k {
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
		for _, pattern := range []string{".*.????????", "checkpoint/*.new", "checkpoint/.*.????????"} {
			if list, _ := filepath.Glob(filepath.Join(out, pattern)); len(list) > 0 {
				t.Errorf("call %d, %s: left %v", k, place, list)
			}
		}
		os.RemoveAll(out)
	}
	if failed == 0 {
		t.Error("no fault failed a run")
	}
	t.Logf("%d calls, %d of which failed a run", last, failed)
}
