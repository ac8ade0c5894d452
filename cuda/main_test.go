//go:build gpu && cgo

package cuda

import (
	"os"
	"testing"

	"onlinerna/cuda/check/gputest"
)

func TestMain(m *testing.M) { os.Exit(gputest.Main(m)) }

var check = gputest.Check
