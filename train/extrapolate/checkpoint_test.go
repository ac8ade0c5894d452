package extrapolate

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"onlinerna/train/safetensors"
)

// TestKerasStatistics finds BatchNorm's statistics among tensors that have numbers for names.
func TestKerasStatistics(t *testing.T) {
	c, err := Open("../statedict/testdata/keras/net.weights.h5", "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	want := map[string]Role{
		"layers/batch_normalization/vars/1":   RunningMean, // a layer without scale
		"layers/batch_normalization/vars/2":   RunningVar,
		"layers/batch_normalization_1/vars/2": RunningMean,
		"layers/batch_normalization_1/vars/3": RunningVar,
	}
	for _, x := range c.Tensors {
		if own, _ := c.Lookup(x.Name); x.Role != want[x.Name] || own.Role != x.Role {
			t.Errorf("%s: %v and %v, want %v", x.Name, x.Role, own.Role, want[x.Name])
		}
	}
}

// TestVerifying tells how many bytes are verified, tells them all, and ends when the context does.
func TestVerifying(t *testing.T) {
	dir := t.TempDir()
	var paths []string
	for _, name := range []string{"a", "b"} {
		path := filepath.Join(dir, name+".safetensors")
		list := []safetensors.Tensor{{Name: "w", DType: safetensors.F32, Shape: []int{3 << 20}}}
		w, err := safetensors.Create(path, list, nil)
		if err == nil {
			err = w.Write("w", make([]float32, 3<<20))
		}
		if err == nil {
			err = w.Commit()
		}
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	var total, read int64
	part := ""
	opt := Options{Start: func(what string, bytes int64) { part, total = what, bytes }, Progress: func(n int64) { read += n }}
	s, err := (&Window{Order: Given}).Open(t.Context(), paths, opt)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if part != "verifying" || total < 2*12<<20 || read > total || read < total-2*4096 { // headers are verified before
		t.Errorf("%s: %d of %d bytes", part, read, total)
	}
	part = ""
	opt.Unverified = true
	if s, err = (&Window{Order: Given}).Open(t.Context(), paths, opt); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if opt.Unverified = false; part != "" {
		t.Errorf("%s of files that are not to be verified", part)
	}
	ctx, cancel := context.WithCancel(t.Context())
	opt.Progress = func(int64) { cancel() }
	if _, err := (&Window{Order: Given}).Open(ctx, paths, opt); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
