package train

import (
	"fmt"
	"math"
	"slices"

	"onlinerna/data"
	"onlinerna/data/random"
	"onlinerna/train/network"
)

// split divides a training set into the images to train on and those held out, Config.Holdout of them, which the seed
// chooses. Without a share held is nil.
func split(c *Spec, set data.Dataset) (train, held data.Dataset, err error) {
	if c.Holdout == 0 {
		return set, nil, nil
	}
	n := set.Len()
	k := max(1, int(math.Round(c.Holdout*float64(n))))
	if k >= n {
		return nil, nil, fmt.Errorf("holdout %g of %d images leaves none to train on", c.Holdout, n)
	}
	order := make([]int32, n)
	r := random.New(c.Seed, heldStream)
	r.Perm(order)
	indices := make([]int, n)
	for i, j := range order {
		indices[i] = int(j)
	}
	// In the order of the set, which may be that of its files.
	slices.Sort(indices[:k])
	slices.Sort(indices[k:])
	if held, err = data.Subset(set, indices[:k]); err != nil {
		return nil, nil, err
	}
	train, err = data.Subset(set, indices[k:])
	return train, held, err
}

// Held are the images of a training set that a run with this Config.Holdout and Config.Seed holds out.
func Held(set data.Dataset, share float64, seed uint64) (data.Dataset, error) {
	_, held, err := split(&Spec{Holdout: share, Seed: seed}, set)
	return held, err
}

// splitOf tells the files of weights how their data are divided.
func splitOf(c *Spec, train, val data.Dataset) *network.Split {
	s := &network.Split{Data: c.Data, ValData: c.ValData, ValSplit: c.ValSplit, Holdout: c.Holdout}
	if c.Holdout > 0 {
		s.Seed = c.Seed
	}
	if c.ValSplit > 0 {
		s.Count(train, val)
	} else {
		s.Count(train)
	}
	return s
}
