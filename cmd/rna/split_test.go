package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"onlinerna/train/network"
	"onlinerna/train/safetensors"
)

// said returns the output of a command in one line, since text wraps.
func said(t *testing.T, args string) string {
	t.Helper()
	status, out, stderr := runRNA(t, strings.Fields(args)...)
	if status != 0 {
		t.Fatalf("rna %s: status %d, %s", args, status, stderr)
	}
	return strings.Join(strings.Fields(out+stderr), " ")
}

func expect(t *testing.T, args string, want ...string) {
	t.Helper()
	got := said(t, args)
	for _, w := range want {
		if !strings.Contains(got, w) {
			t.Errorf("rna %s does not say %q: %s", args, w, got)
		}
	}
}

// trained runs a training on a quarter of two classes' images, photos, in the working directory.
func trained(t *testing.T, options string) {
	t.Helper()
	photos := photographs(t, 8, 40)
	t.Chdir(t.TempDir())
	if err := os.CopyFS("photos", os.DirFS(filepath.Join(photos, "train"))); err != nil {
		t.Fatal(err)
	}
	said(t, "train --data photos --model conv6 --image-size 16 --batch 6 --accumulate 1 --epochs 4 --lr 0.01 "+
		"--rna-start 1 --rna-window 2 --keep-every 1 -q -o run "+options)
}

// Evaluating a run's weights, trained on packed images, on the unpacked images gives a warning.
func TestEvalPacked(t *testing.T) {
	photos := photographs(t, 8, 40)
	t.Chdir(t.TempDir())
	if err := os.CopyFS("photos", os.DirFS(filepath.Join(photos, "train"))); err != nil {
		t.Fatal(err)
	}
	said(t, "data pack photos packed --size 32 -q")
	said(t, "train --data packed --val-split 25% --model conv6 --image-size 16 --batch 6 --epochs 1 --rna off -q -o run")
	expect(t, "eval run", "the 4 of 16 images of packed", "conv6 on 4 images")
	expect(t, "eval run --data photos", "as many images of the same classes as packed was packed from",
		"evaluate on packed", "conv6 on 16 images")
	list, err := filepath.Glob("photos/*/*")
	if err != nil || os.Remove(list[0]) != nil {
		t.Fatal(list, err)
	}
	if out := said(t, "eval run --data photos"); strings.Contains(out, "packed from") {
		t.Errorf("other images: %s", out)
	}
}

// Weights record the split of their data, and are evaluated on the held-out images, wherever these are.
func TestEvalSplit(t *testing.T) {
	trained(t, "--val-split 25%")
	for _, file := range []string{"run/best.safetensors", "run/final.safetensors", "run/rna.safetensors",
		"run/kept/epoch-0002.safetensors"} {
		meta, err := network.ReadMeta(file)
		if err != nil || meta.Split == nil || meta.Split.ValSplit != 0.25 || meta.Split.Data != "photos" ||
			meta.Split.Images != 16 {
			t.Errorf("%s: %+v, %v", file, meta.Split, err)
		}
		expect(t, "eval --weights "+file+" --data photos", "the 4 of 16 images of photos that were not trained on",
			"conv6 on 4 images")
	}
	expect(t, "eval run", "run/best.safetensors: ", "of epoch", "the 4 of 16 images of photos", "conv6 on 4 images")
	expect(t, "eval --weights run", "conv6 on 4 images")
	expect(t, "eval run/best.safetensors --all-images", "all 16 images of photos, also those that the weights were "+
		"trained on", "conv6 on 16 images")
	expect(t, "eval run --val-split 50%", "conv6 on 8 images")

	if err := os.CopyFS("elsewhere", os.DirFS("photos")); err != nil {
		t.Fatal(err)
	}
	expect(t, "eval run/final.safetensors --data elsewhere", "the 4 of 16 images of elsewhere", "conv6 on 4 images")
	if err := os.Remove("elsewhere/cat/0.jpg"); err != nil {
		t.Fatal(err)
	}
	expect(t, "eval run --data elsewhere", "elsewhere has other images than photos", "conv6 on 15 images")
	if err := os.Rename("photos/cat/0.jpg", "photos/cat/new.jpg"); err != nil {
		t.Fatal(err)
	}
	expect(t, "eval run", "have been added, removed or renamed since", "conv6 on 4 images")

	unsay(t, "run/best.safetensors", "old.safetensors")
	expect(t, "eval --weights old.safetensors --data photos", "old.safetensors does not say on which images it was "+
		"trained: all of photos are evaluated", "conv6 on 16 images")
	if err := os.Rename("old.safetensors", "run/best.safetensors"); err != nil {
		t.Fatal(err)
	}
	expect(t, "eval run", "the 4 of 16 images of photos", "conv6 on 4 images") // as recorded in config.json
	if err := os.Rename("photos", "moved"); err != nil {
		t.Fatal(err)
	}
	fails(t, []string{"eval", "run"}, "not at photos: name their place by --data")
	fails(t, []string{"eval", "run", "more"}, "images are named by --data")
	fails(t, []string{"eval", "run", "--all-images", "--val-split", "0.1"}, "exclude each other")
}

// The images of a training set are recognised as such, and only its held-out part is evaluated.
func TestEvalHoldout(t *testing.T) {
	trained(t, "--val-split 0.25")
	if err := os.Mkdir("set", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, split := range []string{"train", "val"} {
		if err := os.CopyFS("set/"+split, os.DirFS("photos")); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename("set/val/cat/0.jpg", "set/val/cat/other.jpg"); err != nil {
		t.Fatal(err)
	}
	train := "train --data set --model conv6 --image-size 16 --batch 6 --accumulate 1 --epochs 1 --rna off -q -o "
	said(t, train+"plain")
	expect(t, "eval plain", "conv6 on 16 images")
	expect(t, "eval plain --data set/train", "the weights were trained on all 16 images of set/train",
		"conv6 on 16 images")
	said(t, train+"held --holdout 0.2")
	expect(t, "eval held --data set/train", "--holdout 0.2", "the 3 of 16 images of set/train that were not trained on",
		"conv6 on 3 images")
}

// The folder of a run stands for its weights in every command that reads weights.
func TestRunFolder(t *testing.T) {
	trained(t, "--val-split 0.25")
	best := "run/best.safetensors: "
	expect(t, "predict run photos/cat/0.jpg --top 1", best, "photos/cat/0.jpg")
	expect(t, "predict photos/cat/0.jpg --weights run --top 1", best)
	expect(t, "export run -o net.onnx", best, "net.onnx: conv6")
	expect(t, "inspect run", best, "conv1.weight")
	expect(t, "convert run best.pt", best, "best.pt: ")
	if err := os.Mkdir("other", 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir("other")
	// from another folder than that of the run's start
	expect(t, "eval ../run", "the 4 of 16 images of ", "photos that were not trained on", "conv6 on 4 images")
	t.Chdir("..")
	for range 2 {
		expect(t, "extrapolate run -o run/out.safetensors", "4 files: run/kept/epoch-0001.safetensors to "+
			"run/kept/epoch-0004.safetensors")
	}
	expect(t, "extrapolate run -o auto.safetensors --auto --bn reestimate", "the 4 of 16 images of photos that were "+
		"not trained on", "chosen")
	if meta, err := network.ReadMeta("auto.safetensors"); err != nil || meta.Split == nil || meta.Split.ValSplit != 0.25 {
		t.Errorf("%+v, %v", meta.Split, err)
	}
	for _, args := range []string{"extrapolate run -o run/best.safetensors", "export run -o run/final.safetensors",
		"eval run --predictions run/metrics.jsonl",
		"extrapolate run -o run/kept/epoch-0001.safetensors"} {
		fails(t, strings.Fields(args), "name another output")
	}
	if err := os.RemoveAll("run/kept"); err != nil {
		t.Fatal(err)
	}
	fails(t, []string{"extrapolate", "run", "-o", "k.safetensors"}, "train with --keep-every 1")
	if err := os.RemoveAll("run/checkpoint"); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"run/best.safetensors", "run/final.safetensors"} {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	fails(t, []string{"eval", "run"}, "the run has no weights yet")
}

// unsay copies weights without the record of their split.
func unsay(t *testing.T, from, to string) { t.Helper(); without(t, from, to, "split") }

// unsayAll copies weights without their metadata.
func unsayAll(t *testing.T, from, to string) { t.Helper(); without(t, from, to, "") }

// without copies weights without one key of their metadata, or without all.
func without(t *testing.T, from, to, key string) {
	t.Helper()
	f, err := safetensors.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if delete(f.Metadata, key); key == "" {
		f.Metadata = nil
	}
	w, err := safetensors.Create(to, f.Tensors, f.Metadata)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	for _, x := range f.Tensors {
		b := make([]byte, x.Len()*x.DType.Size())
		off, size := f.Section(x)
		file, err := os.Open(from)
		if err == nil {
			_, err = file.ReadAt(b[:size], off)
			file.Close()
		}
		if err == nil {
			err = w.WriteAt(x.Name, b, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
}
