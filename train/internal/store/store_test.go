package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func fill(text string) func(string) error {
	return func(dir string) error {
		return errors.Join(os.WriteFile(filepath.Join(dir, "a"), []byte(text), 0o644),
			os.WriteFile(filepath.Join(dir, "b"), []byte(strings.Repeat(text, 3)), 0o644))
	}
}

func write(t *testing.T, root string, keep, step int) string {
	t.Helper()
	dir, err := Write(root, keep, Manifest{Epoch: 1, Step: step}, fill(fmt.Sprint("step ", step)), nil)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func names(t *testing.T, root string) string {
	t.Helper()
	all, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range all {
		list = append(list, e.Name())
	}
	return strings.Join(list, " ")
}

func TestKeep(t *testing.T) {
	root := filepath.Join(t.TempDir(), "run", "checkpoint")
	if list, err := List(root); err != nil || list != nil {
		t.Fatal(list, err)
	}
	for step := range 4 {
		write(t, root, 2, step)
	}
	if got := names(t, root); got != "000003 000004" {
		t.Errorf("kept: %s", got)
	}
	n, err := Find(root)
	if err != nil || n.Step != 3 || filepath.Base(n.Dir) != "000004" || n.Damaged != nil || n.Program == "" ||
		len(n.Files) != 2 {
		t.Errorf("%+v, %v", n, err)
	}
}

// A killed writer leaves no checkpoint, and the next writer removes its leftovers.
func TestKilled(t *testing.T) {
	root := t.TempDir()
	write(t, root, 2, 1)
	for _, junk := range []string{"000002.new/a", "000009/a"} {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(junk)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, junk), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := Find(root); err != nil || n.Step != 1 || n.Damaged != nil {
		t.Fatal(n, err)
	}
	full := errors.New("no space left")
	if _, err := Write(root, 2, Manifest{Step: 2}, func(dir string) error { fill("x")(dir); return full },
		nil); err != full {
		t.Fatal(err)
	}
	if got := names(t, root); got != "000001" {
		t.Errorf("left: %s", got)
	}
	if write(t, root, 2, 3); names(t, root) != "000001 000002" {
		t.Errorf("left: %s", names(t, root))
	}
}

// Every flipped bit of a checkpoint is detected in its file, and the previous checkpoint is used.
func TestEveryBit(t *testing.T) {
	root := t.TempDir()
	write(t, root, 2, 1)
	dir := write(t, root, 2, 2)
	for _, name := range []string{"a", "b", manifestName} {
		path := filepath.Join(dir, name)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i := range b {
			for bit := range 8 {
				if name == manifestName && bit != i%8 {
					continue // too many bytes to test all
				}
				b[i] ^= 1 << bit
				if err := os.WriteFile(path, b, 0o644); err != nil {
					t.Fatal(err)
				}
				if n, err := Find(root); err != nil || n.Step != 1 || len(n.Damaged) != 1 ||
					!strings.Contains(n.Damaged[0].Err.Error(), path) {
					t.Fatalf("%s, bit %d of byte %d: %+v, %v", name, bit, i, n, err)
				}
				b[i] ^= 1 << bit
			}
		}
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := Find(root); err != nil || n.Step != 2 {
		t.Fatal(n, err)
	}
}

// TestForeign: files that the system adds are no damage, and no part of a checkpoint.
func TestForeign(t *testing.T) {
	root := t.TempDir()
	added := []string{".DS_Store", "._a", ".nfs0123", "Thumbs.db", "desktop.ini"}
	add := func(dir string) (err error) {
		for _, name := range added {
			err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o644))
		}
		return err
	}
	dir, err := Write(root, 1, Manifest{Epoch: 1, Step: 2}, func(dir string) error {
		return errors.Join(fill("x")(dir), add(dir))
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if n, err := Find(root); err != nil || n.Step != 2 || n.Damaged != nil || len(n.Files) != 2 {
			t.Errorf("with %s: %+v, %v", names(t, dir), n, err)
		}
		for _, name := range added { // while the checkpoint was written
			os.Remove(filepath.Join(dir, name))
		}
	}
	if err := add(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := Verify(dir); err != nil {
		t.Error(err)
	}
}

func TestSetAside(t *testing.T) {
	root := t.TempDir()
	write(t, root, 2, 1)
	dir := write(t, root, 2, 2)
	for name, change := range map[string]func(path string) error{
		"a": os.Remove, "c": func(path string) error { return os.WriteFile(path, nil, 0o644) },
	} {
		path := filepath.Join(dir, name)
		before, _ := os.ReadFile(path)
		if err := change(path); err != nil {
			t.Fatal(err)
		}
		if n, _ := Find(root); len(n.Damaged) != 1 || !strings.Contains(n.Damaged[0].Err.Error(), path) {
			t.Errorf("%s: %+v", name, n)
		}
		os.Remove(path)
		if before != nil {
			os.WriteFile(path, before, 0o644)
		}
	}
	if err := os.Truncate(filepath.Join(dir, "b"), 3); err != nil {
		t.Fatal(err)
	}
	n, _ := Find(root)
	if to, err := n.Damaged[0].SetAside(); err != nil || filepath.Base(to) != "000002.damaged" {
		t.Fatal(to, err)
	}
	write(t, root, 2, 3)
	if got := names(t, root); got != "000001 000002.damaged 000003" {
		t.Errorf("%s", got)
	}
}

func TestAllDamaged(t *testing.T) {
	root := t.TempDir()
	for step := range 2 {
		os.Remove(filepath.Join(write(t, root, 2, step), "a"))
	}
	if n, err := Find(root); len(n.Damaged) != 2 || err == nil || strings.Count(err.Error(), root) < 2 {
		t.Error(n, err)
	}
}
