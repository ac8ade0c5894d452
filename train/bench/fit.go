package bench

import (
	"fmt"
	"math"

	"onlinerna/internal/text"
	"onlinerna/nn/device"
	"onlinerna/train/network"
)

const (
	// paperBatch is the batch of the paper's figure.
	paperBatch = 256
	// unknownBatch is used if the system does not report its free memory.
	unknownBatch = 32
)

// fit chooses the batch of a training step if o has none, and rejects one that does not fit in memory. why explains the
// choice.
func fit(dev device.Device, o Options, free int64) (batch int, why string, err error) {
	if o.Batch > 0 && free == 0 {
		return o.Batch, "as asked", nil
	}
	if free == 0 {
		return unknownBatch, "a small one, since the system does not say how much memory is free", nil
	}
	o.Batch = max(o.Batch, 0)
	asked := o.Batch
	net, err := network.New(dev, o.Model, o.config(), o.Seed)
	if err != nil {
		return 0, "", err
	}
	defer net.Close()
	net.LowMemory = o.LowMemory
	// Momentum, gradients and weights count, whoever allocates them.
	own := 3 * int64(dev.DType().Size()) * int64(net.Params.Len())
	c := net.Model().Config
	need := func(batch int) (int64, error) {
		s, err := net.Plan(batch)
		return own + int64(s.Arena+s.Inputs) + int64(batch)*int64(c.Size)*int64(c.Size)*int64(c.Channels), err
	}
	limit := int64(usable * float64(free))
	if asked > 0 {
		// A plan takes memory too: none is made for far too many images.
		two, err := need(2) // one image may be too few for a batch normalisation
		if err != nil {
			return 0, "", err
		}
		four, err := need(4)
		bytes := 2 * limit
		if about := float64(asked) * float64(four-two) / 2; err == nil && about > float64(bytes) {
			bytes = int64(min(about, math.MaxInt64/2))
		} else if err == nil {
			bytes, err = need(asked)
		}
		if err == nil && bytes > limit {
			err = fmt.Errorf("a batch of %d takes %s and %s are free, of which a tenth is left alone: choose a smaller one, "+
				"or none and the largest that fits is taken", asked, gigabytes(bytes), gigabytes(free))
		}
		return asked, "as asked", err
	}
	before := int64(0) // bytes of twice the batch, 0 for none
	for batch = paperBatch; ; batch /= 2 {
		bytes, err := need(batch)
		least := batch
		if err != nil && batch == 1 && before > 0 { // one image is too few for a batch normalisation
			bytes, least, err = before, 2, nil
		}
		switch {
		case err != nil:
			return 0, "", err
		case bytes <= limit && batch == paperBatch:
			return batch, "the paper's", nil
		case bytes <= limit:
			return batch, fmt.Sprintf("half of %d until it fits: it takes %s, and %s are free, of which a tenth is left alone",
				paperBatch, gigabytes(bytes), gigabytes(free)), nil
		case batch == 1:
			return 0, "", fmt.Errorf("%s takes %s even for %s, and %s are free, of which a tenth is left alone: choose a smaller "+
				"model or smaller images, or free memory", o.Model, gigabytes(bytes), [...]string{"one image", "two images"}[least-1],
				gigabytes(free))
		}
		before = bytes
	}
}

// gigabytes writes a number of bytes.
func gigabytes(n int64) string {
	if n < 1e9 {
		return text.Number(float64(n)/1e6) + " MB"
	}
	return text.Number(float64(n)/1e9) + " GB"
}
