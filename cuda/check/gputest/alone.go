//go:build gpu && cgo

package gputest

import (
	"testing"

	"onlinerna/cuda/check/sim"
)

// kernelsVariable passes the KernelCache to a process that [Alone] starts.
const kernelsVariable = "ONLINERNA_TEST_KERNELS"

// Alone is [sim.Alone] with the same KernelCache.
func Alone(t *testing.T, dir string, f func(dir string)) {
	t.Helper()
	sim.Alone(t, dir, f, kernelsVariable+"="+KernelCache)
}
