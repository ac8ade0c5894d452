package train

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"gorgonia.org/gorgonia"

	"onlinerna/data"
	"onlinerna/internal/files"
	"onlinerna/internal/text"
	"onlinerna/nn"
	"onlinerna/train/ranks"
	"onlinerna/train/ranks/rankstest"
)

// A run in which the k-th file system call fails, for every k, ends with an error that names the file, or with normal
// results. The same command then resumes or starts it, and ends with equal bits: one process, and ranks that write
// checkpoints in shares. SOAK_KILLS fails each call by each error.
func TestFaults(t *testing.T) {
	nn.Register(nn.Architecture{Name: "faults", Size: 8, Channels: 3, Classes: 2,
		Build: func(b *nn.Builder, x *gorgonia.Node) *gorgonia.Node {
			x = b.ReLU("relu", b.BatchNorm("bn", b.Conv("conv", x, nn.Conv{Filters: 4, Kernel: 3, Stride: 2, Pad: 1}), 1))
			return b.Linear("fc", b.GlobalAvgPool("avgpool", x), b.Config().Classes)
		}})
	for _, n := range []int{1, 2} {
		t.Run(text.Count(n, "rank"), func(t *testing.T) { sweepFaults(t, n) })
	}
}

func sweepFaults(t *testing.T, n int) {
	dir := t.TempDir()
	var list []image.Image
	var labels []int
	for i := range 8 {
		img := image.NewRGBA(image.Rect(0, 0, 8, 8))
		draw.Draw(img, img.Bounds(), image.NewUniform(color.RGBA{uint8(200 * (i % 2)), uint8(9 * i), 60, 255}), image.Point{},
			draw.Src)
		list, labels = append(list, img), append(labels, i%2)
	}
	set, err := data.FromImages([]string{"blue", "red"}, list, labels)
	if err != nil {
		t.Fatal(err)
	}
	spec := func(out string) Spec {
		c := tiny(out)
		c.Model, c.Batch, c.ImageSize = "faults", 2, 0
		c.Epochs, c.StepsLimit, c.CheckpointSteps, c.CheckpointKeep = 2, 2, 1, 1
		return c
	}
	rank := func(out string, g *ranks.Group) error {
		dev, err := cpuOne()
		if err != nil {
			return err
		}
		defer dev.(io.Closer).Close()
		d := Deps{Device: dev, Ranks: g, Train: set, Val: set}
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
	// ends returns the weights of a run, and the steps and epochs of its metrics.
	ends := func(out string) string {
		t.Helper()
		b, err := os.ReadFile(filepath.Join(out, "final.safetensors"))
		lines, err2 := os.ReadFile(filepath.Join(out, metricsName))
		if err = errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(lines) {
			var of struct {
				Kind        string
				Epoch, Step int
			}
			if err := json.Unmarshal(line, &of); err != nil {
				t.Fatal(err)
			}
			b = fmt.Append(b, of)
		}
		return string(b)
	}
	const disk, full, stale = syscall.EIO, syscall.ENOSPC, syscall.ESTALE
	errorsOf := func(call string) []error { // no code tells those apart that are not of the call alone
		switch call {
		case "write":
			return []error{io.ErrShortWrite, full, disk, syscall.EINTR, stale}
		case "sync":
			return []error{syscall.EINVAL, disk, stale, full, syscall.EINTR}
		}
		return []error{disk, syscall.EINTR, full, stale, syscall.EDQUOT}
	}
	var calls atomic.Int64
	// failing fails the call with number k by the i-th of its errors, and syncs nothing: no power is lost here.
	failing := func(k, i int64) (failed func() (place string, err error)) {
		calls.Store(0)
		var place string
		var fault error
		files.Fault = func(call, path string) error {
			if calls.Add(1)-1 == k {
				list := errorsOf(call)
				place, fault = call+" "+path, list[i%int64(len(list))]
				return fault
			}
			if call == "sync" {
				return files.ErrSkip
			}
			return nil
		}
		return func() (string, error) { return place, fault }
	}
	defer func() { files.Fault = nil }()
	whole, out := filepath.Join(dir, "whole"), filepath.Join(dir, "run")
	failing(-1, 0)
	if err := train(whole); err != nil {
		t.Fatal(err)
	}
	want := ends(whole)
	last := calls.Load()
	if last < 100 {
		t.Fatalf("%d calls only", last)
	}
	every, rounds := int64(1), int64(1)
	if testing.Short() {
		every = 7
	}
	if os.Getenv("SOAK_KILLS") != "" {
		rounds = 5
	}
	runs, failed := 0, 0
	for i := int64(0); i/rounds*every < last; i++ {
		k := i / rounds * every
		of := failing(k, k+i%rounds)
		err := train(out)
		place, fault := of()
		failing(-1, 0)
		runs++
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
		if ends(out) != want {
			t.Errorf("call %d, %s: %v: other weights or metrics (%v)", k, place, fault, err)
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
	t.Logf("%d calls, %d runs, %d of which failed", last, runs, failed)
}
