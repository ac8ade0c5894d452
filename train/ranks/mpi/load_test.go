//go:build mpi && linux

package mpi

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"onlinerna/train/ranks"
)

// TestLoadSaysWhy checks that the error says why a library cannot be loaded, on any thread.
func TestLoadSaysWhy(t *testing.T) {
	t.Setenv(LibraryVar, filepath.Join(t.TempDir(), "libmpi.so"))
	var all sync.WaitGroup
	errs := make(chan error, 8)
	for range 8 {
		all.Go(func() {
			for range 3000 {
				_, err := load(ranks.World{})
				if !strings.Contains(fmt.Sprint(err), "cannot open shared object file") {
					errs <- err
					return
				}
			}
		})
	}
	all.Wait()
	close(errs)
	for err := range errs {
		t.Errorf("%v", err)
	}
}
