//go:build gpu && cgo

package launches_test

import (
	"os"
	"testing"

	"onlinerna/cuda/check/gputest"
)

func TestMain(m *testing.M) { os.Exit(gputest.Main(m)) }
