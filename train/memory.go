package train

import (
	"errors"
	"fmt"

	"onlinerna/nn/device"
)

// trainedOn is how many of n images are not held out.
func (c *Config) trainedOn(n int) int { return max(1, int(float64(n)*(1-c.Holdout))) }

// noRoom explains why the vectors of the training could not be allocated.
func (c *Config) noRoom(err error) error {
	if oom := outOfMemory(nil); errors.As(err, &oom) && oom.OutOfMemory() {
		return fmt.Errorf("the weights of %s, their gradients and the momentum: %w: no batch fits; choose a smaller model, or free memory", c.Model, err)
	}
	return err
}

// later is how many bytes of the device's memory the run is to allocate whatever the batch: what hooks hold, and with windows
// RNA's snapshots, which lie elsewhere where there is no room for them.
func (r *Run) later(windows bool) int64 {
	c, vectors := &r.Config, 0
	if c.EMA > 0 || c.RNA.Mode != Off {
		vectors++ // the iterate, while others are looked at
	}
	if c.EMA > 0 {
		vectors++
	}
	if c.RNA.Mode != Off {
		vectors++ // a snapshot on its way to a checkpoint
	}
	for _, yes := range []bool{c.RNA.Mode == Online, c.RNA.SegmentMeans, c.RNA.Residual == Gradients} {
		if yes && c.RNA.Mode != Off {
			vectors++
		}
	}
	size := int64(r.dev.DType().Size())
	params := int64(r.Net.Params.Len())
	bytes := int64(vectors) * size * params
	if r.Net.Stats != nil {
		bytes += int64(vectors) * size * int64(r.Net.Stats.Len())
	}
	if !windows || c.RNA.Mode == Off {
		return bytes
	}
	snapshots := c.RNA.capacity() + 1
	if d, ok := device.As[Spacer](r.dev); ok {
		return bytes + d.SpaceBytes(int(params), snapshots)
	}
	return bytes + int64(snapshots)*size*params
}
