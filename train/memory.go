package train

import (
	"errors"
	"fmt"

	"onlinerna/nn/device"
	"onlinerna/train/hook"
	"onlinerna/train/ranks/shard"
)

// trainedOn is how many of n images are not held out.
func trainedOn(c *Resolved, n int) int { return max(1, int(float64(n)*(1-c.Holdout))) }

// noRoom explains why the vectors of the training could not be allocated.
func noRoom(c *Resolved, err error) error {
	if oom := outOfMemory(nil); errors.As(err, &oom) && oom.OutOfMemory() {
		return fmt.Errorf("the weights of %s, their gradients and the state of %s: %w: no batch fits; choose a smaller model, or free memory", c.Model, c.Optimizer, err)
	}
	return err
}

// later is how many bytes of the device's memory the run is to allocate whatever the batch: what hooks hold, and with snapshots
// those, which lie elsewhere where there is no room for them.
func (r *Run) later(snapshots bool) int64 {
	var sum hook.Holdings
	for _, h := range r.hooks {
		if h, ok := h.(hook.HoldingHook); ok {
			x := h.Holds()
			sum.Weights += x.Weights
			sum.Snapshots += x.Snapshots
		}
	}
	if sum.Weights > 0 {
		sum.Weights++ // the iterate, while others are looked at
	}
	size := int64(r.Device.DType().Size())
	params := int64(r.Net.Params.Len())
	bytes := int64(sum.Weights) * size * params
	if r.Net.Stats != nil {
		bytes += int64(sum.Weights) * size * int64(r.Net.Stats.Len())
	}
	if !snapshots || sum.Snapshots == 0 {
		return bytes
	}
	part := shard.Largest(int(params), r.Ranks.Size())
	if d, ok := device.As[hook.Spacer](r.Device); ok {
		return bytes + d.SpaceBytes(part, sum.Snapshots)
	}
	return bytes + int64(sum.Snapshots)*size*int64(part)
}
