package data

import (
	"context"

	"onlinerna/internal/files"
)

// expecter is a set of images in files that can have the system read image i before it is wanted.
type expecter interface{ expect(i int) }

// expect has the system read image i ahead, where the set and the system can do that. It does not wait.
func expect(ds Dataset, i int) {
	switch d := ds.(type) {
	case *subset:
		expect(d.Dataset, d.indices[i])
	case *renamed:
		expect(d.Dataset, i)
	case expecter:
		d.expect(i)
	}
}

func (d *archive) expect(i int) { d.file(i).expect(d.offsets[i], int64(d.sizes[i])) }

func (d *records) expect(i int) {
	c := d.contents[i]
	d.file(i).expect(c.offset, int64(c.size))
}

func (d *parquet) expect(i int) {
	if d.slots[i] < 0 {
		d.archive.expect(i)
	}
}

func (d *folder) expect(i int) {
	if f, _, err := files.OpenSized(d.Name(i)); err == nil {
		willNeed(f, 0, 0)
		f.Close()
	}
}

func (s *shardFile) expect(offset, size int64) {
	if !s.keep {
		if f, err := files.Open(s.path); err == nil {
			willNeed(f, offset, size)
			f.Close()
		}
		return
	}
	if s.open() != nil {
		return // reading will say so
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.f != nil {
		willNeed(s.f, offset, size)
	}
}

// readAhead expects the images of the steps that come from soon, while those before are decoded.
func (r *run) readAhead(ctx context.Context, soon <-chan int) {
	l := r.loader
	for step := range soon {
		for at := step * l.opt.Batch; at < min((step+1)*l.opt.Batch, l.ds.Len()) && ctx.Err() == nil; at++ {
			if at%l.opt.Repeat == 0 {
				expect(l.ds, r.at(at))
			}
		}
	}
}
