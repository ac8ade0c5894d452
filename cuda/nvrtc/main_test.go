//go:build gpu && cgo

package nvrtc

import (
	"os"
	"testing"

	"onlinerna/cuda/check/gputest"
)

func TestMain(m *testing.M) { os.Exit(gputest.Main(m)) }

var check, open, openWith, fault = gputest.Check, gputest.Open, gputest.OpenWith, gputest.Fault
