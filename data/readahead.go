package data

import (
	"context"

	"onlinerna/data/format"
)

// expect asks the system to read image i ahead, if the set and the system support it. It does not wait.
func expect(ds Dataset, i int) {
	switch d := ds.(type) {
	case *subset:
		expect(d.Dataset, d.indices[i])
	case stored:
		if e, ok := d.Set.(format.Expecter); ok {
			e.Expect(i)
		}
	case format.Expecter:
		d.Expect(i)
	}
}

// readAhead expects the images of the steps received from soon, while earlier ones are decoded.
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
