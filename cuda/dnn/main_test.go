//go:build gpu && cgo

package dnn

import (
	"os"
	"testing"

	"onlinerna/cuda/check/gputest"
)

func TestMain(m *testing.M) { os.Exit(gputest.Main(m)) }

var check, open, openWith, alloc, fault, needDNN = gputest.Check, gputest.Open, gputest.OpenWith, gputest.Alloc,
	gputest.Fault, gputest.NeedDNN
