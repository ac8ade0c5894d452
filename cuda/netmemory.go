//go:build gpu && cgo

package cuda

import "onlinerna/nn/device"

// Room implements device.OwnMemory. To be spared is what cuDNN and cuBLAS need, which load kernels and take workspaces of their own when
// they are first used.
func (d *Net) Room() (free, spare int64, err error) {
	free, total, err := d.c.MemInfo()
	if err != nil {
		return 0, 0, d.explain(err)
	}
	s, err := d.c.Stats()
	return free + s.Cached, min(total/16, mostSpared), err
}

// mostSpared of a card are 1 GiB: the libraries take no more of a larger one.
const mostSpared = 1 << 30

// SpaceBytes is the memory that a space for vectors of dim elements takes, and vectors of it,
// with the DefaultReserve that they leave free: without it they would go to the host.
func (d *Net) SpaceBytes(dim, vectors int) int64 {
	work := 8*(columns+1)*int64(min(dim, spanLen)) + 2*4*int64(min(dim, stageLen))
	pieces := int64((dim + pieceLen - 1) / pieceLen)
	return work + int64(vectors)*(4*int64(dim)+pieces<<21) + DefaultReserve
}

// PeakMemory implements device.OwnMemory.
func (d *Net) PeakMemory() (int64, error) {
	s, err := d.c.Stats()
	return s.Peak, err
}

// Card implements device.Card: the GPU's name.
func (d *Net) Card() string { return d.c.info.Name }

var (
	_ device.OwnMemory = (*Net)(nil)
	_ device.Card      = (*Net)(nil)
)
