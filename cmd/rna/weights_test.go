package main

import (
	"bytes"
	"context"
	"fmt"
	"image/color"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"onlinerna/nn"
	"onlinerna/nn/device/cpu"
	"onlinerna/train/network"
	"onlinerna/train/safetensors"
)

// lenets writes weights of lenet on images of three channels, each changed by edit, and returns their paths.
func lenets(t *testing.T, dir string, classes, files int, edit func(i int, n *network.Network) error) (paths []string) {
	t.Helper()
	dev, err := cpu.New(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	for i := range files {
		n, err := network.New(dev, "lenet", nn.Config{Classes: classes, Channels: 3, Size: 28}, uint64(i))
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, filepath.Join(dir, fmt.Sprint("w", i, ".safetensors")))
		if err = edit(i, n); err == nil {
			err = n.SaveWeights(paths[i], n.Params, n.Stats, network.Meta{Model: "lenet", ImageSize: 28,
				Mean: []float64{0, 0, 0}, Std: []float64{1, 1, 1}})
		}
		if err != nil {
			t.Fatal(err)
		}
		n.Close()
	}
	return paths
}

// TestNotFinite refuses weights with NaN or Inf in a line that names the tensor, and outputs that are not finite.
func TestNotFinite(t *testing.T) {
	dir := t.TempDir()
	image := filepath.Join(dir, "photos", "red", "a.png")
	picture(t, image, color.White, 28)
	picture(t, filepath.Join(dir, "photos", "blue", "a.png"), color.White, 28)
	weights := lenets(t, dir, 2, 2, func(i int, n *network.Network) error {
		if i == 0 {
			return n.Params.WriteAt64([]float64{math.NaN(), 1, math.Inf(-1)}, 3)
		}
		x := make([]float64, n.Params.Len())
		for k := range x {
			x[k] = 3e38
		}
		return n.Params.WriteAt64(x, 0)
	})
	eval := []string{"eval", "", "--data", filepath.Join(dir, "photos"), "--per-class"}
	for _, args := range [][]string{{"predict", "", image}, {"predict", "", image, "--json"},
		{"predict", "", image, "--csv"}, eval, {"export", "", "-o", image + ".onnx"}} {
		if args[1] = "--weights=" + weights[0]; args[0] == "export" {
			args[1] = weights[0]
		}
		status, out, stderr := runRNA(t, args...)
		if want := `: tensor "conv1.weight" has 2 of 450 elements that are not finite`; status != 1 ||
			!strings.HasPrefix(stderr, "rna: "+weights[0]+want) || strings.Count(stderr, "\n") != 1 ||
			strings.Contains(out, "NaN") {
			t.Errorf("%v: status %d, stdout %q, stderr %q", args, status, out, stderr)
		}
	}
	status, out, stderr := runRNA(t, "predict", "--weights", weights[1], image, "--json")
	if status != 1 || out != "" || stderr != "rna: "+image+": the net's outputs are not finite\n" {
		t.Errorf("status %d, stdout %q, stderr %q", status, out, stderr)
	}
	eval[1] = weights[1]
	status, _, stderr = runRNA(t, eval...)
	if status != 0 || !strings.Contains(stderr, "warning: the loss is not finite") {
		t.Errorf("status %d, stderr %q", status, stderr)
	}
}

// TestOtherNet names the net whose tensors a file has.
func TestOtherNet(t *testing.T) {
	dir := t.TempDir()
	image := filepath.Join(dir, "a.png")
	picture(t, image, color.White, 28)
	weights := lenets(t, dir, 2, 1, func(int, *network.Network) error { return nil })[0]
	for _, args := range [][]string{{"predict", image, "--weights", weights}, {"export", weights, "-o", image + ".onnx"}} {
		status, _, stderr := runRNA(t, append(args, "--model", "resnet18")...)
		if status != 1 || !strings.Contains(stderr, weights+": the weights do not fit resnet18, as their tensors are those "+
			"of lenet: give that model") {
			t.Errorf("%v: status %d, %q", args, status, stderr)
		}
	}
}

// TestExtrapolateClasses refuses to count three folders as the first of 1,000 outputs, and takes their names.
func TestExtrapolateClasses(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for i, class := range []string{"blue", "red", "white"} {
		picture(t, filepath.Join("photos", class, "a.png"), color.Gray{uint8(80 * i)}, 28)
		picture(t, filepath.Join("photos", class, "b.png"), color.Gray{uint8(80*i + 10)}, 28)
	}
	lenets(t, ".", 1000, 3, func(int, *network.Network) error { return nil })
	args := strings.Fields("extrapolate w0.safetensors w1.safetensors w2.safetensors -o o.safetensors -q --auto " +
		"--eval photos")
	status, _, stderr := runRNA(t, args...)
	if status != 1 || !strings.Contains(stderr, "w2.safetensors has 1000 outputs without names, and the data 3 classes: "+
		"name those of the weights by --classes") {
		t.Errorf("status %d, stderr %q", status, stderr)
	}
	names := make([]string, 1000)
	for i := range names {
		names[i] = fmt.Sprint("class", i)
	}
	names[7], names[500], names[999] = "white", "red", "blue"
	if err := os.WriteFile("names", []byte(strings.Join(names, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	if status, _, stderr := runRNA(t, append(args, "--classes", "names")...); status != 0 {
		t.Errorf("status %d, stderr %q", status, stderr)
	}
}

// TestPredictInterrupted ends as other commands do.
func TestPredictInterrupted(t *testing.T) {
	dir := t.TempDir()
	image := filepath.Join(dir, "a.png")
	picture(t, image, color.White, 28)
	weights := lenets(t, dir, 2, 1, func(int, *network.Network) error { return nil })[0]
	for _, more := range [][]string{nil, {"--sheet", filepath.Join(dir, "s.png")}} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		var stderr bytes.Buffer
		status := run(ctx, append([]string{"predict", image, "--weights", weights}, more...), io.Discard, &stderr)
		if status != 130 || stderr.String() != "rna: interrupted, nothing was written\n" {
			t.Errorf("%v: status %d, %q", more, status, stderr.String())
		}
	}
}

// TestRunWithoutWeights takes the best weights of the last checkpoint, if the run's own files are gone.
func TestRunWithoutWeights(t *testing.T) {
	trained(t, "--val-split 0.25")
	for _, name := range []string{"best", "final"} {
		if err := os.Remove(filepath.Join("run", name+".safetensors")); err != nil {
			t.Fatal(err)
		}
	}
	checkpoint := newestCheckpoint(t, "run")
	expect(t, "eval run", filepath.Join(checkpoint, "best.safetensors")+": ")
	if err := os.Remove(filepath.Join(checkpoint, "best.safetensors")); err != nil {
		t.Fatal(err)
	}
	expect(t, "eval run", filepath.Join(checkpoint, "weights.safetensors")+": ")
}

// TestInitAlike asks for one of the nets that have the tensors of a file.
func TestInitAlike(t *testing.T) {
	t.Chdir(t.TempDir())
	m, err := nn.Build("vit_tiny_patch16_224", nn.Config{Batch: 1, Mode: nn.Eval})
	if err != nil {
		t.Fatal(err)
	}
	var list []safetensors.Tensor
	for _, e := range m.StateDict() {
		list = append(list, safetensors.Tensor{Name: e.Name, DType: safetensors.F32, Shape: e.Shape})
	}
	w, err := safetensors.Create("vit.safetensors", list, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range list {
		if err := w.Write(x.Name, make([]float32, x.Len())); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	fails(t, strings.Fields("train --data glyphs --init vit.safetensors -o run"),
		"deit_tiny_patch16_224 and vit_tiny_patch16_224 alike; give --model, one of these\n")
}
