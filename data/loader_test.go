package data

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"onlinerna/data/augment"
	"onlinerna/data/format"
	"onlinerna/data/imaging"
	"onlinerna/data/internal/datatest"
)

// fake is a set of n images of 4×4 whose pixels are their index. Those in bad cannot be read.
type fake struct {
	n   int
	bad map[int]bool
}

func (d fake) Len() int          { return d.n }
func (d fake) Classes() []string { return []string{"0", "1", "2", "3", "4", "5", "6"} }
func (d fake) Channels() int     { return 1 }
func (d fake) Label(i int) int   { return i % 7 }
func (d fake) Name(i int) string { return fmt.Sprintf("image-%d", i) }
func (d fake) Read(i int, region Region, s *Scratch) (*imaging.Image, error) {
	if d.bad[i] {
		return nil, fmt.Errorf("%s: damaged", d.Name(i))
	}
	if i%3 == 0 {
		runtime.Gosched() // let workers overtake each other
	}
	return s.pixels(bytes.Repeat([]byte{byte(i)}, 16), 4, 4, 1, region)
}

func newLoader(t testing.TB, ds Dataset, tr augment.Transform, opt LoaderOptions) *Loader {
	t.Helper()
	l, err := NewLoader(ds, tr, opt)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// collect copies the batches of an epoch.
func collect(t testing.TB, l *Loader, epoch, fromStep int) []Batch {
	t.Helper()
	var list []Batch
	for b, err := range l.Epoch(context.Background(), epoch, fromStep) {
		if err != nil {
			t.Fatal(err)
		}
		c := *b
		c.Images, c.Crops = slices.Clone(b.Images), slices.Clone(b.Crops)
		c.Labels, c.Index = slices.Clone(b.Labels), slices.Clone(b.Index)
		list = append(list, c)
	}
	return list
}

func indices(batches []Batch) (all []int) {
	for _, b := range batches {
		all = append(all, b.Index...)
	}
	return all
}

func TestLoaderBatches(t *testing.T) {
	l := newLoader(t, fake{n: 10}, augment.TrainCIFAR(4), LoaderOptions{Batch: 4, Workers: 2})
	if l.Steps() != 3 || l.Images() != 10 {
		t.Errorf("%d steps of %d images, want 3 of 10", l.Steps(), l.Images())
	}
	next := 0
	for k, b := range collect(t, l, 5, 0) {
		if want := min(4, 10-4*k); b.N != want || b.Step != k || b.First != 4*k || b.Epoch != 5 || b.Height != 4 ||
			b.Width != 4 || b.Channels != 1 {
			t.Errorf("batch %d is %+v", k, b)
		}
		if len(b.Images) != b.N*16 || len(b.Crops) != b.N*3 || len(b.Labels) != b.N || len(b.Index) != b.N {
			t.Fatalf("batch %d: slices do not match N: %+v", k, b)
		}
		for n := range b.N {
			if b.Index[n] != next || int(b.Labels[n]) != next%7 || int(b.image(n)[15]) != next {
				t.Errorf("row %d of batch %d is not image %d: %+v", n, k, next, b)
			}
			next++
		}
	}
	if next != 10 {
		t.Errorf("%d images, want 10", next)
	}
}

func TestLoaderShuffles(t *testing.T) {
	const n = 100
	opt := LoaderOptions{Batch: 16, Workers: 2, Shuffle: true, Seed: 1}
	load := func(opt LoaderOptions, epoch int) []int {
		return indices(collect(t, newLoader(t, fake{n: n}, augment.EvalSmall(4), opt), epoch, 0))
	}
	first := load(opt, 0)
	sorted := slices.Clone(first)
	slices.Sort(sorted)
	for i := range n {
		if sorted[i] != i {
			t.Fatalf("not a permutation: %v", first)
		}
	}
	otherSeed, otherStream := opt, opt
	otherSeed.Seed++
	otherStream.Stream++
	for name, other := range map[string][]int{"epoch": load(opt, 1), "seed": load(otherSeed, 0),
		"stream": load(otherStream, 0), "none": sorted} {
		if slices.Equal(first, other) {
			t.Errorf("another %s has the same order", name)
		}
	}
	limited := opt
	limited.Limit = 2
	if got := load(limited, 0); !slices.Equal(got, first[:32]) {
		t.Errorf("two batches have %v, want the first of %v", got, first)
	}
}

func TestLoaderIsIndependentOfWorkersAndResumes(t *testing.T) {
	dir := t.TempDir()
	var members []datatest.Member
	for i := range 45 {
		key := fmt.Sprintf("k%02d", i)
		content := datatest.JPEG(t, 40+i, 60-i, i)
		if i%20 == 7 {
			content = content[:100]
		}
		members = append(members, datatest.File(key+".jpg", content), datatest.Text(key+".cls", fmt.Sprint(i%5)))
	}
	datatest.Write(t, dir, "train-0.tar", datatest.Tar(t, members...))
	ds, _, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	datatest.Close(t, ds)
	for _, substitute := range []bool{true, false} {
		opt := LoaderOptions{Batch: 8, Shuffle: true, Seed: 3, Substitute: substitute, MaxBad: 0.1}
		var want []Batch
		for _, workers := range []int{1, 2, 5} {
			opt.Workers = workers
			opt.Prefetch = workers
			l := newLoader(t, ds, augment.TrainImageNet(24), opt)
			collect(t, l, 0, 0) // leaves memory behind that the next epoch reuses
			got := collect(t, l, 4, 0)
			if want == nil {
				want = got
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("other batches with %d workers", workers)
			}
			for _, step := range []int{1, 3, len(want)} {
				if got := collect(t, l, 4, step); !slices.EqualFunc(got, want[step:],
					func(a, b Batch) bool { return reflect.DeepEqual(a, b) }) {
					t.Errorf("other batches from step %d on", step)
				}
			}
		}
		if images := len(indices(want)); substitute && images != 45 || !substitute && images != 43 {
			t.Errorf("substitute=%t: %d images", substitute, images)
		}
	}
}

func TestLoaderBadImages(t *testing.T) {
	ds := fake{n: 10, bad: map[int]bool{2: true, 3: true, 9: true}}
	for _, c := range []struct {
		substitute bool
		want       []int
		perBatch   []int
	}{
		{true, []int{0, 1, 4, 4, 4, 5, 6, 7, 8, 0}, []int{2, 0, 1}},
		{false, []int{0, 1, 4, 5, 6, 7, 8}, []int{2, 0, 1}},
	} {
		var log []string
		opt := LoaderOptions{Batch: 4, Workers: 3, Substitute: c.substitute, MaxBad: 0.3}
		opt.Log = func(format string, args ...any) { log = append(log, fmt.Sprintf(format, args...)) }
		l := newLoader(t, ds, augment.EvalSmall(4), opt)
		batches := collect(t, l, 0, 0)
		if got := indices(batches); !slices.Equal(got, c.want) {
			t.Errorf("substitute=%t: images %v, want %v", c.substitute, got, c.want)
		}
		for k, b := range batches {
			if b.Bad != c.perBatch[k] {
				t.Errorf("batch %d counts %d unreadable images, want %d", k, b.Bad, c.perBatch[k])
			}
			for n, i := range b.Index {
				if int(b.image(n)[0]) != i || int(b.Labels[n]) != i%7 {
					t.Errorf("row %d of batch %d does not belong to image %d", n, k, i)
				}
			}
		}
		collect(t, l, 1, 0)
		if len(log) != 3 || !strings.Contains(log[0], "image-2") || !strings.Contains(log[2], "image-9") {
			t.Errorf("log %q, want images 2, 3 and 9 once", log)
		}
	}
}

func TestLoaderPassesOverEmptyBatch(t *testing.T) {
	ds := fake{n: 6, bad: map[int]bool{2: true, 3: true}}
	batches := collect(t, newLoader(t, ds, augment.EvalSmall(4), LoaderOptions{Batch: 2, MaxBad: 0.5}), 0, 0)
	if len(batches) != 2 || batches[1].Step != 2 {
		t.Errorf("batches %+v, want steps 0 and 2", batches)
	}
}

func TestLoaderTooManyBadImages(t *testing.T) {
	all := map[int]bool{}
	for i := range 200 {
		all[i] = true
	}
	for _, c := range []struct {
		bad        map[int]bool
		maxBad     MaxBad
		steps      int // delivered before the error; -1: no error
		substitute bool
	}{
		{map[int]bool{50: true, 150: true}, 0.01, -1, true},
		{map[int]bool{50: true, 150: true, 199: true}, 0.01, 9, true},
		{map[int]bool{50: true, 150: true, 199: true}, 0.01, 9, false},
		{map[int]bool{50: true}, 0, 2, true},
		{map[int]bool{50: true}, 0, 2, false},
		{all, 0.01, 0, true},
		{all, AllBad, 0, true},
		{all, AllBad, -1, false},
		{map[int]bool{50: true, 150: true}, 2, -1, true},
		{map[int]bool{50: true, 150: true, 199: true}, 2, 9, true},
	} {
		l := newLoader(t, fake{200, c.bad}, augment.EvalSmall(4),
			LoaderOptions{Batch: 20, Workers: 2, Substitute: c.substitute, MaxBad: c.maxBad})
		steps := 0
		var failed error
		for b, err := range l.Epoch(context.Background(), 0, 0) {
			if failed != nil {
				t.Fatal("something follows an error")
			}
			if failed = err; err == nil {
				steps++
			} else if b != nil {
				t.Error("a batch comes with an error")
			}
		}
		if c.steps < 0 {
			if failed != nil {
				t.Errorf("%+v: %v", c, failed)
			}
			continue
		}
		datatest.WantError(t, failed, "image-", "damaged", "cannot be read")
		if steps != c.steps {
			t.Errorf("bad %v: %d batches before the error, want %d", c.bad, steps, c.steps)
		}
	}
}

// A batch that is larger than the set is the set.
func TestLoaderHugeBatch(t *testing.T) {
	for _, size := range []int{1001, 1 << 40, math.MaxInt} {
		l := newLoader(t, fake{n: 1000}, augment.EvalSmall(4), LoaderOptions{Batch: size})
		if got := collect(t, l, 0, 0); len(got) != 1 || got[0].N != 1000 || l.Steps() != 1 {
			t.Errorf("batches of %d: %d batches of %d steps", size, len(got), l.Steps())
		}
	}
}

func TestLoaderLeavesNoGoroutines(t *testing.T) {
	before := runtime.NumGoroutine()
	l := newLoader(t, fake{n: 1000}, augment.EvalSmall(4), LoaderOptions{Batch: 8, Workers: 4, Prefetch: 3})
	for step := range 5 {
		for b, err := range l.Epoch(context.Background(), 0, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if b.Step == step {
				break
			}
		}
	}
	if got := collect(t, l, 0, 120); len(got) != 5 || got[0].Index[0] != 960 {
		t.Errorf("after early breaks: %d batches", len(got))
	}
	done, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	why := errors.New("interrupted")
	var failed error
	for b, err := range l.Epoch(done, 0, 0) {
		if failed = err; err == nil && b.Step == 2 {
			cancel(why)
		}
	}
	if !errors.Is(failed, why) {
		t.Errorf("error %v, want the context's cause", failed)
	}
	func() {
		defer func() { _ = recover() }()
		for range l.Epoch(context.Background(), 0, 0) {
			panic("in the loop")
		}
	}()
	for range 100 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}

func TestLoaderReusesMemory(t *testing.T) {
	ds := Glyphs(format.GlyphVal)
	l := newLoader(t, ds, augment.TrainCIFAR(28), LoaderOptions{Batch: 50, Workers: 2, Shuffle: true})
	epoch := func() {
		for _, err := range l.Epoch(context.Background(), 0, 0) {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	epoch()
	// Channels, goroutines and the order; nothing for each of the 1,000 images.
	if n := testing.AllocsPerRun(5, epoch); n > 100 {
		t.Errorf("%g allocations an epoch", n)
	}
}

func TestLoadersRunTogether(t *testing.T) {
	l := newLoader(t, fake{n: 100}, augment.EvalSmall(4), LoaderOptions{Batch: 10, Workers: 2, Shuffle: true})
	inner := collect(t, l, 1, 0)
	k := 0
	for b, err := range l.Epoch(context.Background(), 0, 0) {
		if err != nil {
			t.Fatal(err)
		}
		index := slices.Clone(b.Index)
		if k%5 == 0 && !reflect.DeepEqual(collect(t, l, 1, 0), inner) {
			t.Error("an epoch inside another differs")
		}
		if !slices.Equal(index, b.Index) {
			t.Error("an epoch inside another changes its batch")
		}
		k++
	}
}

func TestNewLoaderErrors(t *testing.T) {
	ds := fake{n: 3}
	for _, c := range []struct {
		ds   Dataset
		tr   augment.Transform
		opt  LoaderOptions
		want string
	}{
		{nil, augment.Eval(4), LoaderOptions{Batch: 1}, "dataset"},
		{fake{}, augment.Eval(4), LoaderOptions{Batch: 1}, "no images"},
		{ds, augment.Eval(0), LoaderOptions{Batch: 1}, "image size is 0"},
		{ds, augment.Eval(4), LoaderOptions{}, "Batch is 0"},
		{ds, augment.Eval(4), LoaderOptions{Batch: 1, Workers: -1}, "-1"},
		{ds, augment.Eval(4), LoaderOptions{Batch: 1, Workers: 1e9}, "1000000000 workers: at most"},
		{ds, augment.Eval(4), LoaderOptions{Batch: 1, MaxBad: 1.5}, "max-bad 1.5"},
		{ds, augment.Eval(4), LoaderOptions{Batch: 1, Rank: 2, Ranks: 2}, "Rank 2 of 2"},
	} {
		_, err := NewLoader(c.ds, c.tr, c.opt)
		datatest.WantError(t, err, c.want)
	}
	l := newLoader(t, ds, augment.Eval(4), LoaderOptions{Batch: 2})
	for _, err := range l.Epoch(context.Background(), 0, 3) {
		datatest.WantError(t, err, "step 3", "[0, 2]")
	}
}

// wide gives images of another number of channels than it says.
type wide struct{ fake }

func (d wide) Read(i int, region Region, s *Scratch) (*imaging.Image, error) {
	return imaging.New(4, 4, 3), nil
}

func TestLoaderChecksChannels(t *testing.T) {
	l := newLoader(t, wide{fake{n: 2}}, augment.EvalSmall(4), LoaderOptions{Batch: 2})
	for _, err := range l.Epoch(context.Background(), 0, 0) {
		datatest.WantError(t, err, "image-0", "3 channels", "1")
	}
}

func BenchmarkLoader(b *testing.B) {
	for _, c := range []struct {
		name   string
		source image.Point
		tr     augment.Transform
	}{
		{"cifar", image.Pt(32, 32), augment.TrainCIFAR(32)},
		{"imagenet", image.Pt(500, 375), augment.TrainImageNet(224)},
		{"imagenet-eval", image.Pt(500, 375), augment.Eval(224)},
	} {
		b.Run(c.name, func(b *testing.B) {
			dir := b.TempDir()
			var members []datatest.Member
			for i := range 64 {
				key := fmt.Sprintf("k%02d", i)
				members = append(members, datatest.File(key+".jpg", datatest.JPEG(b, c.source.X, c.source.Y, i)),
					datatest.Text(key+".cls", "0"))
			}
			datatest.Write(b, dir, "train-0.tar", datatest.Tar(b, members...))
			ds, _, err := Open(dir, Options{})
			if err != nil {
				b.Fatal(err)
			}
			datatest.Close(b, ds)
			l := newLoader(b, ds, c.tr, LoaderOptions{Batch: 32, Shuffle: true})
			images := 0
			b.ReportAllocs()
			b.ResetTimer()
			for epoch := range b.N {
				for batch, err := range l.Epoch(context.Background(), epoch, 0) {
					if err != nil {
						b.Fatal(err)
					}
					images += batch.N
				}
			}
			b.ReportMetric(float64(images)/b.Elapsed().Seconds()/float64(runtime.GOMAXPROCS(0)), "images/s/core")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// Batches are dealt to loaders without a gap or a repetition, from any step on.
func TestLoaderDealsBatches(t *testing.T) {
	for _, n := range []int{1, 2, 23, 40, 41} {
		ds := fake{n: n, bad: map[int]bool{3: true}}
		for _, ranks := range []int{1, 2, 3, 4} {
			for _, from := range []int{0, 1, 3} {
				opt := LoaderOptions{Batch: 4, Shuffle: true, Seed: 5, Substitute: true, MaxBad: 0.5}
				one := newLoader(t, ds, augment.Eval(4), opt)
				if from > one.Steps() {
					continue
				}
				want := collect(t, one, 2, from)
				dealt := make([][]Batch, ranks)
				for k := range ranks {
					opt.Rank, opt.Ranks = k, ranks
					l := newLoader(t, ds, augment.Eval(4), opt)
					if l.Steps() != one.Steps() || l.Images() != one.Images() {
						t.Fatal("a loader of many has its own idea of the epoch")
					}
					dealt[k] = collect(t, l, 2, from)
					if own := len(indices(dealt[k])); own != l.Own(from) {
						t.Errorf("%d images, Own says %d", own, l.Own(from))
					}
				}
				for i, b := range want {
					d := dealt[i%ranks]
					if len(d) <= i/ranks || !reflect.DeepEqual(d[i/ranks], b) {
						t.Fatalf("%d images, %d ranks, from %d: batch %d is not rank %d's", n, ranks, from, i, i%ranks)
					}
				}
				if sum := len(slices.Concat(dealt...)); sum != len(want) {
					t.Errorf("%d batches were dealt of %d", sum, len(want))
				}
				if one.Between(from, one.Steps()) != len(indices(want)) {
					t.Errorf("between step %d and the end: %d images", from, one.Between(from, one.Steps()))
				}
			}
		}
	}
}
