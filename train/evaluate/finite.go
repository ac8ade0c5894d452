package evaluate

import (
	"fmt"
	"math"

	"onlinerna/train/network"
	"onlinerna/train/statedict"
)

// CheckFinite refuses the loaded weights if a number is not finite. It names the tensor as the file does, and counts.
func (o *Options) CheckFinite(net *network.Network, file *statedict.File) error {
	name, err := net.NonFinite()
	if err != nil || name == "" {
		return err
	}
	for _, t := range file.Tensors {
		if !t.DType.Float() {
			continue
		}
		x, bad := make([]float64, t.Len()), 0
		if err := file.Float64s(t, x); err != nil {
			return err
		}
		for _, v := range x {
			if !finite(v) {
				bad++
			}
		}
		if bad > 0 {
			return fmt.Errorf("%s: tensor %q has %d of %d elements that are not finite: choose other weights", o.Weights, t.Name,
				bad, len(x))
		}
	}
	return fmt.Errorf("%s: tensor %q has elements beyond the range of float32: choose other weights", o.Weights, name)
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
