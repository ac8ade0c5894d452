package train

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"sync"

	"onlinerna/data"
	"onlinerna/internal/files"
	"onlinerna/train/network"
	"onlinerna/train/ranks"
)

// Common reports whether all ranks return an error, each its own value of it. After any other error the ranks must be
// aborted: they may wait for this one.
func Common(err error) bool {
	return ranks.Common(err) || errors.Is(err, ErrInterrupted) || errors.As(err, new(*DivergedError))
}

// stopped reports whether the context of any rank has ended.
func (r *Run) stopped(ctx context.Context) (bool, error) { return r.Ranks.Any(ctx.Err() != nil) }

// total combines the ranks' results of a step: the sum of the losses over images, the tally, the unreadable images, and
// whether any rank must stop, must write a checkpoint, has lost one or has failed. It seals one that all have written.
func (f *flow) total(ctx context.Context, bad int) (allBad int, stop bool, err error) {
	g := f.Ranks
	stop = ctx.Err() != nil
	if g.Single() {
		f.folder.due.at, f.lost = f.folder.due.at || f.folder.wants(), f.folder.unwritten()
		return bad, stop, nil
	}
	x := []float64{f.loss, float64(f.images), f.got.Loss, f.got.Top1, f.got.Top5, float64(f.got.Images), float64(bad), 0,
		0, 0, 0}
	if stop {
		x[7] = 1
	}
	if f.folder.wants() {
		x[8] = 1
	}
	if f.folder.unwritten() || f.failed != nil {
		x[9] = 1
	}
	if f.folder.ready() {
		x[10] = 1
	}
	if err := g.Sum64(x).Wait(); err != nil {
		return 0, false, err
	}
	if int(x[10]) == g.Size() {
		if err := f.folder.seal(); err != nil {
			return 0, false, err
		}
	}
	f.loss, f.images = x[0], int(x[1])
	f.got = network.Tally{Loss: x[2], Top1: x[3], Top5: x[4], Images: int(x[5])}
	f.folder.due.at, f.lost = f.folder.due.at || x[8] > 0, x[9] > 0
	return int(x[6]), x[7] > 0, nil
}

// program identifies the build: the version of Go and a hash of the file.
var program = sync.OnceValue(func() string {
	h := sha256.New()
	path, err := os.Executable()
	if err == nil {
		var f *os.File
		if f, err = files.Open(path); err == nil {
			_, err = io.Copy(h, f)
			f.Close()
		}
	}
	if err != nil {
		return runtime.Version()
	}
	return fmt.Sprintf("%s %x", runtime.Version(), h.Sum(nil)[:8])
})

// preflight compares, before the first step, everything that ranks must agree on.
func (r *Run) preflight() error {
	g := r.Ranks
	if g.Single() {
		return nil
	}
	facts := []ranks.Fact{{Name: "program", Value: program()}}
	options := Options()
	for i := range options {
		if o := &options[i]; !o.Local {
			facts = append(facts, ranks.Fact{Name: o.Name, Value: cmp.Or(o.Text(&r.Resolved.Spec), "no value")})
		}
	}
	facts = append(facts, ranks.Fact{Name: "the teacher's weights", Value: cmp.Or(r.teacher, "none")})
	train, val := r.Images()
	for _, f := range []struct {
		name string
		n    int
	}{{"parameters", r.Net.Params.Len()}, {"training images", train}, {"validation images", val}, {"epoch", r.pos.Epoch},
		{"batches of the epoch done", r.pos.Batch}, {"steps done", r.pos.Steps}} {
		facts = append(facts, ranks.Fact{Name: f.name, Value: strconv.Itoa(f.n)})
	}
	for _, of := range []struct {
		name string
		is   data.Identity
	}{{"training", r.in.are.Train}, {"validation", r.in.are.Val}} {
		for _, x := range of.is.Facts() {
			facts = append(facts, ranks.Fact{Name: of.name + " images as they lie: " + x[0], Value: cmp.Or(x[1], "no value")})
		}
	}
	if err := g.Compare(facts...); err != nil {
		return err
	}
	return r.engine.sameBits()
}
