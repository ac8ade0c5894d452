package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"onlinerna/internal/files"
	"onlinerna/internal/files/powercut"
)

// TestPowerCut cuts the power after each change that writing checkpoints makes, and loses any of the unsynced changes:
// the newest checkpoint that Write returned, or a newer one, is complete.
func TestPowerCut(t *testing.T) {
	dir := t.TempDir()
	root := filepath.Join(dir, "run", "checkpoint")
	disk := powercut.Record(dir)
	defer disk.Stop()
	for step := 1; step <= 4; step++ {
		_, err := Write(root, 2, Manifest{Step: step}, func(dir string) error {
			return errors.Join(files.Write(filepath.Join(dir, "a"), fmt.Append(nil, "weights ", step)),
				files.Write(filepath.Join(dir, "b"), []byte(strings.Repeat("x", step))))
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		disk.Mark(step)
	}
	disk.Stop()
	states := 0
	err := disk.States(40, rand.New(rand.NewPCG(1, 2)), func(dir, when string, mark int) error {
		states++
		root := filepath.Join(dir, "run", "checkpoint")
		n, err := Find(root)
		if mark > 0 && (err != nil || n.Step < mark) {
			return fmt.Errorf("%s: step %d, at least %d is expected; %v", when, n.Step, mark, err)
		}
		list, err := List(root)
		for _, dir := range list {
			_, e := Verify(dir)
			err = errors.Join(err, e)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", when, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if states < 200 {
		t.Errorf("%d states", states)
	}
	t.Logf("%d states", states)
}
