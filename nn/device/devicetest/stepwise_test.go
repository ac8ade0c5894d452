package devicetest

import (
	"fmt"
	"math"
	"testing"

	"onlinerna/nn/device"
	"onlinerna/nn/op"
)

// elevenBits rounds to 11 significant bits.
func elevenBits(x float64) float64 {
	u := math.Float32bits(float32(x))
	return float64(math.Float32frombits((u + 0xfff + u>>13&1) &^ 0x1fff))
}

var short = Options{Round: elevenBits, Unit: 0x1p-11}

// short devices may be as exact as others.
func TestShortReference(t *testing.T) { Run(t, reference(op.Float32), short) }

// Devices that round have small tolerances: errors of the size of Round's are found in ops without rounding, and
// larger ones in all, also within programs.
func TestFaultsOfShortDevicesAreFound(t *testing.T) {
	larger := func(factor float32) func(x []float32) {
		return func(x []float32) {
			for i := range x {
				x[i] *= 1 + factor
			}
		}
	}
	for _, c := range []struct {
		kind   string
		factor float32
		want   []string
	}{
		{"max_pool", 0x1p-11, []string{"ops/max_pool"}},
		{"batch_norm", 0x1p-11, []string{"ops/batch_norm"}},
		{"conv2d_grad_input", 0x1p-10, []string{"ops/conv2d_grad_input"}},
		{"conv2d_grad_weight", 0x1p-9, []string{"ops/conv2d_grad_weight"}},
		{"linear", 0x1p-9, []string{"ops/linear"}},
		{"batch_norm_grad_input", 0x1p-11, []string{"programs", "residual block, one by one", "batch_norm_grad_input"}},
		{"conv2d_grad_input", 0x1p-9, []string{"programs", "bottleneck", "conv2d_grad_input"}},
		{"softmax_cross_entropy_grad", 0x1p-10, []string{"programs", "LeNet", "softmax_cross_entropy_grad"}},
	} {
		t.Run(fmt.Sprint(c.kind, " in ", c.want[0]), func(t *testing.T) {
			b := broken{Device: device.NewReference(op.Float32), after: only(c.kind, larger(c.factor))}
			var failures []string
			run(recorder{only: "/" + c.want[0], failures: &failures},
				func() (device.Device, error) { return b, nil }, short)
			wantFailure(t, failures, c.want)
		})
	}
}
