//go:build gpu && cgo

package blas_test

import (
	"os"
	"testing"

	"onlinerna/cuda/check/gputest"
)

func TestMain(m *testing.M) { os.Exit(gputest.Main(m)) }

var check, open, alloc, fault = gputest.Check, gputest.Open, gputest.Alloc, gputest.Fault
