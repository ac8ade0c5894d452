package pack

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"onlinerna/data"
	"onlinerna/data/imaging"
	"onlinerna/data/rawfile"
)

type packer struct {
	dir    string
	report *Report
	opt    Options
}

// sample is an image being packed.
type sample struct {
	key, extension string
	content        []byte // a file, or pixels
	width, height  int    // of pixels
	label          int32
	copied         bool
	dropped        string // why
	err            error  // that ends it all
}

// split packs the remaining images of a split.
func (p *packer) split(ctx context.Context, s *Split, ds data.Dataset) error {
	ctx, cancel := context.WithCancel(ctx)
	samples, wait := p.samples(ctx, ds, s.Done)
	defer wait()
	defer cancel()
	var shard shardWriter
	defer func() {
		if shard != nil {
			shard.abort()
		}
	}()
	// The current shard's images, counted once it is complete.
	add := Split{}
	for i := s.Done; i < s.Images; i++ {
		var one *sample
		select {
		case next := <-samples:
			one = <-next
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		switch {
		case one.err != nil:
			return one.err
		case one.dropped != "":
			add.Dropped = append(add.Dropped, Dropped{ds.Name(i), one.dropped})
		default:
			if shard == nil {
				var err error
				if shard, err = p.begin(s); err != nil {
					return err
				}
			}
			if err := shard.add(one); err != nil {
				return err
			}
			if add.Images++; one.copied {
				add.Copied++
			}
		}
		add.Done++
		last := i+1 == s.Images
		if shard != nil && (last || shard.size() >= p.opt.ShardBytes) {
			file := p.name(s)
			whole := shard
			shard = nil // removed if it cannot be finished
			if err := whole.finish(filepath.Join(p.dir, file+unfinished)); err != nil {
				return err
			}
			size, hash, err := sum(filepath.Join(p.dir, file+unfinished))
			if err != nil {
				return err
			}
			s.Shards = append(s.Shards, Shard{file, add.Images, size, hash})
			last = true
		}
		if last {
			s.Done, s.Copied, s.Dropped = s.Done+add.Done, s.Copied+add.Copied, append(s.Dropped, add.Dropped...)
			add = Split{}
			if err := p.report.write(p.dir); err != nil {
				return err
			}
		}
		if p.opt.Progress != nil {
			p.opt.Progress(s.Name, i+1, s.Images)
		}
	}
	if len(s.Shards) == 0 {
		return fmt.Errorf("none of the %d images of %s can be read, the first: %s", s.Images, s.Name, s.Dropped[0].Why)
	}
	return nil
}

func (p *packer) name(s *Split) string {
	end := ".tar"
	if p.opt.Raw {
		end = ".rnaraw"
	}
	return fmt.Sprintf("%s-%05d%s", s.Name, len(s.Shards), end)
}

func (p *packer) begin(s *Split) (shardWriter, error) {
	path := filepath.Join(p.dir, p.name(s)+".tmp")
	if p.opt.Raw {
		return newRawShard(path)
	}
	return newTarShard(path)
}

// samples makes the images from on, several at a time, in their order. wait returns when all goroutines have ended,
// as they do once ctx is done.
func (p *packer) samples(ctx context.Context, ds data.Dataset, from int) (samples chan chan *sample, wait func()) {
	workers := cmp.Or(p.opt.Workers, runtime.GOMAXPROCS(0))
	type job struct {
		i  int
		to chan *sample
	}
	samples = make(chan chan *sample, 4*workers)
	jobs := make(chan job)
	var group sync.WaitGroup
	group.Go(func() {
		defer close(jobs)
		for i := from; i < ds.Len(); i++ {
			to := make(chan *sample, 1)
			select {
			case samples <- to:
			case <-ctx.Done():
				return
			}
			select {
			case jobs <- job{i, to}:
			case <-ctx.Done():
				to <- &sample{err: context.Cause(ctx)}
				return
			}
		}
	})
	for range workers {
		group.Go(func() {
			w := &worker{opt: &p.opt, scratch: data.NewScratch(p.opt.Budget, workers)}
			for j := range jobs {
				j.to <- w.make(ds, j.i)
			}
		})
	}
	return samples, group.Wait
}

// worker is the state of one goroutine.
type worker struct {
	opt     *Options
	scratch *data.Scratch
	resizer imaging.Resizer
	resized imaging.Image
	rgba    image.RGBA
	encoded bytes.Buffer
}

var errPixels = errors.New("stores pixels, not image files: there is nothing to pack")

func (w *worker) make(ds data.Dataset, i int) *sample {
	s := &sample{key: key(i, ds.Name(i)), label: int32(ds.Label(i))}
	defer w.scratch.Release()
	b, ok, err := data.Encoded(ds, i, w.scratch)
	if !ok {
		s.err = fmt.Errorf("%s %w", ds.Name(i), errPixels)
		return s
	}
	var m *imaging.Image
	if err == nil {
		m, err = w.scratch.Decode(b, 3)
	}
	if errors.Is(err, data.ErrTooLarge) { // the contents of a set must not depend on free memory
		s.err = fmt.Errorf("%s: %w; or take it away", ds.Name(i), err)
		return s
	}
	if err != nil {
		s.dropped = err.Error()
		return s
	}
	shorter := min(m.Width, m.Height)
	if !w.opt.Raw && !w.opt.Recode && shorter <= w.opt.Size {
		s.content, s.extension, s.copied = bytes.Clone(b), imaging.Extension(b), true
		return s
	}
	if shorter > w.opt.Size {
		if err := w.resizer.ResizeShorter(&w.resized, m, w.opt.Size); err != nil {
			s.dropped = err.Error()
			return s
		}
		m = &w.resized
	}
	if w.opt.Raw && max(m.Width, m.Height) > rawfile.MaxSide {
		s.dropped = fmt.Sprintf("%dx%d pixels: raw files hold sides of %d at most", m.Width, m.Height, rawfile.MaxSide)
		return s
	}
	if w.opt.Raw {
		s.content, s.width, s.height = bytes.Clone(m.Pix), m.Width, m.Height
		return s
	}
	if s.content, err = w.encode(m); err != nil {
		s.dropped = err.Error()
	}
	s.extension = ".jpg"
	return s
}

// encode makes a JPEG with 4:2:0 sampling.
func (w *worker) encode(m *imaging.Image) ([]byte, error) {
	n := m.Width * m.Height
	if cap(w.rgba.Pix) < 4*n {
		w.rgba.Pix = make([]uint8, 4*n)
	}
	w.rgba.Pix, w.rgba.Stride, w.rgba.Rect = w.rgba.Pix[:4*n], 4*m.Width, m.Bounds()
	for i := range n {
		p, q := w.rgba.Pix[4*i:4*i+4:4*i+4], m.Pix[3*i:3*i+3:3*i+3]
		p[0], p[1], p[2], p[3] = q[0], q[1], q[2], 255
	}
	w.encoded.Reset()
	if err := jpeg.Encode(&w.encoded, &w.rgba, &jpeg.Options{Quality: w.opt.Quality}); err != nil {
		return nil, err
	}
	return bytes.Clone(w.encoded.Bytes()), nil
}

// key is the name of image i in a shard: its number and as much of its name as every system takes.
func key(i int, name string) string {
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name, _, _ = strings.Cut(name, ".")
	clean := []byte(name)
	for k, c := range clean {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-') {
			clean[k] = '_'
		}
	}
	const most = 48
	return fmt.Sprintf("%08d_%s", i, clean[:min(len(clean), most)])
}
