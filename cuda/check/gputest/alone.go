//go:build gpu && cgo

package gputest

import (
	"testing"

	"onlinerna/cuda/check/sim"
)

// kernelsVariable tells a process that [Alone] starts of the other one's KernelCache.
const kernelsVariable = "ONLINERNA_TEST_KERNELS"

// Alone is [sim.Alone] with the same KernelCache.
func Alone(t *testing.T, dir string, f func(dir string)) {
	t.Helper()
	sim.Alone(t, dir, f, kernelsVariable+"="+KernelCache)
}
