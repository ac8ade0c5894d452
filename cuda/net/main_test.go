//go:build gpu && cgo

package net

import (
	"os"
	"testing"

	"onlinerna/cuda/check/gputest"
)

func TestMain(m *testing.M) {
	os.Exit(gputest.Main(m, gputest.ByCuDNN, gputest.ByCuBLAS, gputest.ByKernels, gputest.Vectors, gputest.Replayed,
		gputest.Golden))
}

var check, fault = gputest.Check, gputest.Fault
