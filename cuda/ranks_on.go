//go:build gpu && cgo

package cuda

import (
	"errors"
	"sync/atomic"
	"time"

	"onlinerna/cuda/nccl"
	"onlinerna/cuda/net"
	"onlinerna/nn/device"
)

var _ device.Joining = (*Net)(nil)

// NewRanksID implements device.Joining. A missing NCCL is a [*lazy.NotFoundError].
func (d *Net) NewRanksID() (device.RanksID, error) {
	id, err := nccl.NewID()
	return device.RanksID(id), err
}

// JoinRanks implements device.Joining.
func (d *Net) JoinRanks(o device.RanksOptions) (string, error) {
	if o.ID == (device.RanksID{}) {
		return "", errors.New("cuda: the ranks' ID is empty: pass the one made by NewRanksID")
	}
	var m atomic.Pointer[nccl.Comm]
	d.over = make(chan bool)
	go d.watch(&m, o)
	c, err := d.Join(net.RanksOptions{ID: nccl.ID(o.ID), Rank: o.Rank, Size: o.Size, Narrow: o.Narrow})
	if err != nil {
		return "", err
	}
	m.Store(c)
	v, err := nccl.Version()
	return "NCCL " + v, err
}

// watch runs until the device closes, or its work is overdue or another rank fails.
func (d *Net) watch(m *atomic.Pointer[nccl.Comm], o device.RanksOptions) {
	tick := time.NewTicker(min(time.Second, o.Timeout/10))
	defer tick.Stop()
	for {
		select {
		case <-d.over:
			return
		case <-tick.C:
		}
		if since := d.Context().Waiting(); !since.IsZero() && time.Since(since) > o.Timeout {
			o.Failed(device.ErrOverdue)
			return
		}
		if c := m.Load(); c != nil {
			if err := c.Failed(); err != nil {
				o.Failed(err)
				return
			}
		}
	}
}
