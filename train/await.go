package train

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"onlinerna/train/internal/store"
)

// awaitEvery is the interval at which Await checks a lock.
const awaitEvery = time.Second

// Await waits until no process writes to the run in a folder, and reports whether it has a checkpoint to resume from. A
// missing folder has none. said, if not nil, is called once with the lock's holder.
func Await(ctx context.Context, dir string, said func(holder error)) (checkpoint bool, err error) {
	root := filepath.Join(dir, checkpointDir)
	for {
		lock, err := store.Acquire(root)
		var held *store.HeldError
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return false, nil
		case errors.As(err, &held):
			if said != nil {
				said(held)
				said = nil
			}
			select {
			case <-ctx.Done():
				return false, context.Cause(ctx)
			case <-time.After(awaitEvery):
			}
			continue
		case err != nil:
			return false, err
		}
		list, err := store.List(root)
		return len(list) > 0, errors.Join(err, lock.Release())
	}
}
