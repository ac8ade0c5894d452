//go:build gpu && cgo

package cuda

import (
	"fmt"

	"onlinerna/cuda/dnn"
	"onlinerna/cuda/internal/cache"
	"onlinerna/cuda/lazy"
	"onlinerna/cuda/net"
)

// MakePlans makes cuDNN's plans of programs for a card, which may be absent, and writes them into a folder.
func MakePlans(o PlansOptions) (r PlansReport, err error) {
	properties, err := dnn.Card(o.Card)
	if err != nil {
		return r, err
	}
	if err := lazy.CuDNN.Load(); err != nil {
		return r, err
	}
	h, err := dnn.Describe(properties)
	if err != nil && lazy.Driver.File() == "" && lazy.Driver.Load() != nil {
		return r, fmt.Errorf("%w; cuDNN needs the driver's library libcuda.so.1, but no GPU: sudo apt install libcuda1 "+
			"(Ubuntu: libnvidia-compute-580)", err)
	}
	if err != nil {
		return r, err
	}
	p, err := net.NewPlanner(h, net.Options{Precision: o.Precision})
	if err != nil {
		return r, err
	}
	defer func() {
		if closed := p.Close(); err == nil {
			err = closed
		}
	}()
	if err := o.Describe(p); err != nil {
		return r, err
	}
	o.Folder = cache.Folder(o.Folder)
	r = PlansReport{Card: h.Info().Name, CuDNN: dnn.Version(), Folder: o.Folder}
	all := len(p.Plans())
	err = p.Ahead(properties, o.Threads, func(m dnn.Made) error {
		if m.Plans() > 0 {
			size, err := m.Write(o.Folder)
			if err != nil {
				return err
			}
			r.Plans, r.Bytes = r.Plans+m.Plans(), r.Bytes+int64(size)
		}
		r.Graphs++
		o.After(fmt.Sprintf("%d of %d graphs", r.Graphs, all))
		return nil
	})
	return r, err
}
