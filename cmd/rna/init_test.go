package main

import (
	"os"
	"strings"
	"testing"

	"onlinerna/train"
)

// Without --model the net and its image size come from the initial weights: from rna's metadata, or from the shapes of
// other weights.
func TestInitNet(t *testing.T) {
	trained(t, "--val-split 0.25")
	unsayAll(t, "run/best.safetensors", "other.safetensors")
	quickly := "train --data photos --val-split 0.25 --epochs 1 --limit-batches 1 --limit-val 1 -q --rna off "
	for _, c := range []struct {
		args string
		size int
		says string
	}{
		{"--init run/best.safetensors", 16, "the net is conv6 at 16×16 pixels, as run/best.safetensors says"},
		{"--init run", 16, "as run/best.safetensors says"},
		{"--init run --image-size 20", 20, "at 20×20"},
		{"--init other.safetensors", 32, "the net is conv6 at 32×32 pixels, as the tensors of other.safetensors show"},
		{"--init other.safetensors --model conv6 --image-size 16", 16, "initial weights: other.safetensors"},
	} {
		expect(t, quickly+"-o new "+c.args, c.says)
		if got, err := train.ReadSpec("new"); err != nil || got.Model != "conv6" || got.ImageSize != c.size {
			t.Errorf("%s: %s at %d, %v", c.args, got.Model, got.ImageSize, err)
		}
		if err := os.RemoveAll("new"); err != nil {
			t.Fatal(err)
		}
	}
	fails(t, strings.Fields(quickly+"-o new --init run/checkpoint/"+strings.TrimPrefix(newestCheckpoint(t, "run"),
		"run/checkpoint/")+"/momentum.safetensors"), "state of an optimiser")
	empty := "nothing.safetensors"
	if err := os.WriteFile(empty, []byte("\x10\x00\x00\x00\x00\x00\x00\x00{}              "), 0o644); err != nil {
		t.Fatal(err)
	}
	fails(t, strings.Fields(quickly+"-o new --init "+empty), "the tensors of none of the models")
	if err := os.WriteFile("config.json", []byte(`{"architecture": "conv6", "pretrained_cfg": {"crop_mode": "squash"}}`),
		0o644); err != nil {
		t.Fatal(err)
	}
	expect(t, quickly+"-o new --init other.safetensors", `crop_mode "squash"`)
	if err := os.WriteFile("config.json", []byte(`{"architecture": "resnet50t"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{quickly + "-o new --init ", "eval --data glyphs --weights "} {
		fails(t, strings.Fields(command+empty), empty+": its config.json says that the weights are of timm's "+
			"resnet50t, which is not offered (rna models lists the nets that are)")
		fails(t, strings.Fields(command+"other.safetensors"), "the tensors fit conv6: --model conv6 tries it")
	}
}
