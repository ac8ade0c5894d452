package train

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"onlinerna/nn/device"
	"onlinerna/train/average"
	"onlinerna/train/hook"
	"onlinerna/train/ranks"
)

// swap exchanges the labels of two images of a set in class folders.
func swap(t *testing.T, dir string) {
	t.Helper()
	var files []string
	for _, class := range []string{"*0*", "*1*"} {
		list, err := filepath.Glob(filepath.Join(dir, "train", "*", class))
		if err != nil || len(list) == 0 {
			t.Fatal(err, list)
		}
		files = append(files, list...)
	}
	a, b := files[0], ""
	for _, f := range files {
		if filepath.Dir(f) != filepath.Dir(a) {
			b = f
		}
	}
	other := filepath.Join(filepath.Dir(b), "other-"+filepath.Base(a))
	if err := os.Rename(a, other); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(b, filepath.Join(filepath.Dir(a), "other-"+filepath.Base(b))); err != nil {
		t.Fatal(err)
	}
}

// A run continues with other images only if DataChanged is set.
func TestOtherData(t *testing.T) {
	dir, images := filepath.Join(t.TempDir(), "run"), pictures(t, 20, 6, 16)
	stopped(t, tinyColour(dir, images), 4)
	moved := filepath.Join(t.TempDir(), "moved")
	if err := os.Rename(images, moved); err != nil {
		t.Fatal(err)
	}
	resume := func(changed bool) error {
		r, err := Resume(dir, Deps{Device: cpuDevice(t, 1), DataChanged: changed}, func(c *Spec) { c.Data = moved })
		if err == nil {
			r.Close()
		}
		return err
	}
	if err := resume(false); err != nil {
		t.Fatalf("the same images elsewhere: %v", err)
	}
	swap(t, moved)
	if err := resume(false); err == nil || !strings.Contains(err.Error(), "training images: the ") ||
		!strings.Contains(err.Error(), "--data-changed ok") {
		t.Errorf("relabelled images: %v", err)
	}
	if err := resume(true); err != nil {
		t.Errorf("other images that are meant: %v", err)
	}
}

// A rank with other images is named before the first step.
func TestOtherDataOnARank(t *testing.T) {
	c := Spec{Data: pictures(t, 20, 6, 12), Model: "conv6", Batch: 4, Epochs: 1, RNA: average.Options{Mode: average.Off}}
	other := pictures(t, 20, 6, 12)
	swap(t, other)
	for k, o := range together(t, 2, c, cpuOne, func(g *ranks.Group, c Spec, dev device.Device) outcome {
		if g.Rank() == 1 {
			c.Data = other
		}
		return runOn(t.Context(), c, dev, g, nil)
	}) {
		if o.err == nil || !strings.Contains(o.err.Error(), "training images as they lie: ") ||
			!strings.Contains(o.err.Error(), "rank 1") {
			t.Errorf("rank %d: %v", k, o.err)
		}
	}
}

// Ranks write into one folder.
func TestOtherFolderOnARank(t *testing.T) {
	dir := t.TempDir()
	c := Spec{Data: pictures(t, 20, 6, 12), Model: "conv6", Batch: 4, Epochs: 1, RNA: average.Options{Mode: average.Off}}
	for k, o := range together(t, 2, c, cpuOne, func(g *ranks.Group, c Spec, dev device.Device) outcome {
		c.Out = filepath.Join(dir, string(rune('a'+g.Rank())))
		return runOn(t.Context(), c, dev, g, nil)
	}) {
		if o.err == nil || !strings.Contains(o.err.Error(), "the run's folder: ") {
			t.Errorf("rank %d: %v", k, o.err)
		}
	}
}

// A resumed run deletes half-written files of a killed process; a user's files stay.
func TestLeftFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	stopped(t, tiny(dir), 4)
	var left, others []string
	for _, name := range []string{configName, failureName, stoppedName, profileName, metricsName, sessionsName, finalName,
		bestFile, "rna.safetensors", "ema.safetensors", "average-12.safetensors", keptFile("", 12),
		hook.EMAFile(3, 12.5) + ".safetensors", checkpointDir + "/.lock.json", checkpointDir + "/probe"} {
		left = append(left, filepath.Join(dir, filepath.Dir(name), "."+filepath.Base(name)+".0123abcd"))
	}
	for _, name := range []string{".notes.txt", ".key.0011aabb", ".out.safetensors.0011aabb", checkpointDir + "/.key.0011aabb"} {
		others = append(others, filepath.Join(dir, name))
	}
	for _, path := range slices.Concat(left, others) {
		put(t, path, []byte("half"))
	}
	r, err := Resume(dir, Deps{Device: cpuDevice(t, 1)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, path := range left {
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", path, err)
		}
	}
	for _, path := range others {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
}
