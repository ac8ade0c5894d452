//go:build gpu && cgo

package space

import (
	"os"
	"testing"

	"onlinerna/cuda/check/gputest"
)

func TestMain(m *testing.M) { os.Exit(gputest.Main(m, gputest.Spaces)) }

var check, open, openWith, alloc = gputest.Check, gputest.Open, gputest.OpenWith, gputest.Alloc
