//go:build gpu && cgo

package cuda

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"onlinerna/cuda/nccl"
	"onlinerna/cuda/net"
	"onlinerna/nn/device"
)

// NewRanksID makes the ID by which ranks find each other. A missing NCCL is a [*lazy.NotFoundError].
func NewRanksID() ([]byte, error) {
	id, err := nccl.NewID()
	return id[:], err
}

// JoinRanks makes a device of [OpenNet] one of several ranks. It returns when all ranks have called it, with NCCL's
// version.
func JoinRanks(dev device.Device, o RanksOptions) (string, error) {
	d, ok := device.As[*Net](dev)
	if !ok {
		return "", fmt.Errorf("device %s: NCCL is for GPUs", dev.Name())
	}
	var id nccl.ID
	if copy(id[:], o.ID) != len(id) {
		return "", errors.New("cuda: the ranks' ID is empty: pass the one made by NewRanksID")
	}
	var m atomic.Pointer[nccl.Comm]
	d.over = make(chan bool)
	go d.watch(&m, o)
	c, err := d.Join(net.RanksOptions{ID: id, Rank: o.Rank, Size: o.Size, Narrow: o.Narrow})
	if err != nil {
		return "", err
	}
	m.Store(c)
	v, err := nccl.Version()
	return "NCCL " + v, err
}

// watch runs until the device closes, or its work is overdue or another rank fails.
func (d *Net) watch(m *atomic.Pointer[nccl.Comm], o RanksOptions) {
	tick := time.NewTicker(min(time.Second, o.Timeout/10))
	defer tick.Stop()
	for {
		select {
		case <-d.over:
			return
		case <-tick.C:
		}
		if since := d.Context().Waiting(); !since.IsZero() && time.Since(since) > o.Timeout {
			o.Failed(ErrOverdue)
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
