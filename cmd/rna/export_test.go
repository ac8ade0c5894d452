package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/nn/op"
	"onlinerna/train/network"
	"onlinerna/train/safetensors"
)

// TestExport exports weights of a run, which describe themselves completely, and other weights, which do not.
func TestExport(t *testing.T) {
	dir := t.TempDir()
	run := filepath.Join(dir, "run")
	mustRun(t, append([]string{"train", "--epochs", "1", "-o", run, "-q", "--rna", "off"}, quick[:6]...)...)
	best, onnx := filepath.Join(run, "best.safetensors"), filepath.Join(dir, "net.onnx")
	if out := mustRun(t, "export", best, "-o", onnx); !strings.Contains(out, "net.onnx: lenet, input [dynamic,1,28,28] "+
		"from 0 to 1, logits [dynamic,10]") {
		t.Error(out)
	}
	open, err := os.ReadFile(onnx)
	if err != nil || !bytes.Contains(open, []byte("batch")) || !bytes.Contains(open, []byte("normalise/mean")) {
		t.Errorf("%d bytes: %v", len(open), err)
	}
	if out := mustRun(t, "export", best, "-o", onnx, "--batch", "8", "--mean", "0", "--std", "1", "--image-size",
		"28"); !strings.Contains(out, "[8,1,28,28]") {
		t.Error(out)
	}
	if fixed, err := os.ReadFile(onnx); err != nil || bytes.Contains(fixed, []byte("normalise/mean")) {
		t.Errorf("%d bytes: %v", len(fixed), err)
	}

	plain := filepath.Join(dir, "plain.safetensors")
	strip(t, best, plain)
	fails(t, []string{"export", plain, "-o", onnx}, "name it by --model, as lenet, whose tensors it has")
	fails(t, []string{"export", plain, "-o", onnx, "--model", "lenet"}, "does not say how images are normalised: name "+
		"--mean and --std")
	fails(t, []string{"export", plain, "-o", onnx, "--model", "conv6", "--mean", "0", "--std", "1"},
		"their tensors are those of lenet: give that model")
	mustRun(t, "export", plain, "-o", onnx, "--model", "lenet", "--mean", "0.25", "--std", "0.25")
	if again, err := os.ReadFile(onnx); err != nil || !bytes.Contains(again, []byte("normalise/mean")) {
		t.Errorf("%d bytes: %v", len(again), err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{best}, "--out is missing"},
		{[]string{"-o", onnx}, "want one file"},
		{[]string{best, "-o", onnx, "--batch", "0"}, "must be at least 1, or dynamic"},
		{[]string{best, "-o", best}, "name another output"},
		{[]string{best, "-o", filepath.Join(dir, "nowhere", "net.onnx")}, "nowhere"},
		{[]string{best, "-o", filepath.Join(dir, "new.onnx"), "--image-size", "20"}, "do not fit"},
		{[]string{"convert.go", "-o", onnx}, "convert.go"},
	} {
		fails(t, append([]string{"export"}, c.args...), c.want)
	}
	fails(t, []string{"convert", best, onnx}, "rna export writes ONNX")
	if left, err := filepath.Glob(filepath.Join(dir, "*new*")); err != nil || left != nil {
		t.Errorf("left behind: %v", left)
	}
}

// TestExportPhotos exports undescribed weights of a net for photos: they are normalised as ImageNet's.
func TestExportPhotos(t *testing.T) {
	dir := t.TempDir()
	net, err := network.New(device.NewReference(op.Float32), "resnet18", nn.Config{Classes: 2}, 1)
	if err != nil {
		t.Fatal(err)
	}
	plain, onnx := filepath.Join(dir, "plain.safetensors"), filepath.Join(dir, "net.onnx")
	err = net.SaveWeights(plain, net.Params, net.Stats, network.Meta{})
	if err := errors.Join(err, net.Close()); err != nil {
		t.Fatal(err)
	}
	if out := mustRun(t, "export", plain, "-o", onnx, "--model", "resnet18"); !strings.Contains(out,
		"[dynamic,3,224,224]") || !strings.Contains(out, "[dynamic,2]") {
		t.Error(out)
	}
	b, err := os.ReadFile(onnx)
	for _, x := range [][]float32{{.485, .456, .406}, {.229, .224, .225}} {
		raw, err2 := binary.Append(nil, binary.LittleEndian, x)
		if err := errors.Join(err, err2); err != nil || !bytes.Contains(b, raw) {
			t.Errorf("%v is missing: %v", x, err)
		}
	}
}

// strip copies weights without their description.
func strip(t *testing.T, from, to string) {
	t.Helper()
	f, err := safetensors.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, err := safetensors.Create(to, f.Tensors, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	for _, x := range f.Tensors {
		v := make([]float32, x.Len())
		if err := f.Float32s(x, v, 0); err != nil {
			t.Fatal(err)
		}
		if err := w.Write(x.Name, v); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
}
