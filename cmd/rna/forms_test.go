package main

import (
	"bytes"
	"image"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"onlinerna/cmd/internal/cli"
	"onlinerna/train/statedict"
)

// Files have the format given by their names, or are not written.
func TestForms(t *testing.T) {
	photos := photographs(t, 3, 40)
	t.Chdir(t.TempDir())
	said(t, "train --epochs 2 -o run -q --keep-every 1 --rna off "+strings.Join(quick[:6], " "))
	row := "extrapolate run/kept/epoch-0001.safetensors run/kept/epoch-0002.safetensors -o "
	said(t, row+"k.safetensors")
	said(t, row+"k.pt")
	a, err := statedict.Open("k.safetensors", "")
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := statedict.Open("k.pt", "")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if b.Form != statedict.Torch || len(a.Tensors) != len(b.Tensors) || b.Metadata["model"] != "lenet" {
		t.Errorf("k.pt is %v with %d tensors of %d, %v", b.Form == statedict.Torch, len(b.Tensors), len(a.Tensors),
			b.Metadata)
	}
	for _, x := range a.Tensors {
		y, _ := b.Lookup(x.Name)
		p, err := a.Bytes(nil, x)
		if err != nil {
			t.Fatal(err)
		}
		if q, err := b.Bytes(nil, y); err != nil || !bytes.Equal(p, q) {
			t.Errorf("%s differs: %v", x.Name, err)
		}
	}
	for _, c := range []struct{ args, out, format string }{
		{"data show " + photos + " --image-size 8 -o ", "s.jpg", "jpeg"}, {"data show " + photos + " --image-size 8 -o ",
			"s.png", "png"},
		{"eval run --worst ", "w.jpeg", "jpeg"},
	} {
		said(t, c.args+c.out)
		f, err := os.Open(c.out)
		if err != nil {
			t.Fatal(err)
		}
		if _, format, err := image.Decode(f); err != nil || format != c.format {
			t.Errorf("%s is %s, %v", c.out, format, err)
		}
		f.Close()
	}
	for _, c := range []struct{ args, want string }{
		{row + "k.torchscript", "written as .safetensors, .pt, .pth"},
		{row + "k.onnx", "rna export writes ONNX"},
		{"convert run/best.safetensors x.torchscript", ".safetensors, .pt or .pth"},
		{"convert run/best.safetensors -o x.torchscript", ".safetensors, .pt, .pth"},
		{"convert run/best.safetensors", "want two files"},
		{"convert run/best.safetensors y.pt -o x.pt", "goes with one file"},
		{"export run -o x.pt", "written as .onnx: name it so; rna convert writes .safetensors, .pt, .pth"},
		{"data show " + photos + " -o x.gif", "written as .png, .jpg, .jpeg"},
		{"eval run --worst x.webp", "written as .png"},
		{"eval run --predictions x.json", "written as .csv"},
		{"logreg --csv x.svg", "written as .csv"},
		{"logreg --plot x.jpg", ".svg"},
		{"bench rna --json-file x.csv", "--csv writes .csv"},
		{"predict run a.png -o x.csv", "--csv prints that, and > FILE"},
	} {
		fails(t, strings.Fields(c.args), c.want)
	}
	for _, name := range []string{"k.torchscript", "k.onnx", "x.torchscript", "x.pt", "x.gif", "x.webp", "x.json",
		"x.svg", "x.jpg", "x.csv"} {
		if _, err := os.Stat(name); err == nil {
			t.Errorf("%s was written", name)
		}
	}
}

// Every command with an output has -o for one.
func TestShortOutput(t *testing.T) {
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		var outputs []string
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if kind, _ := pflag.UnquoteUsage(f); (kind == "file" || kind == "folder" || kind == "path") &&
				slices.Contains(cli.Writes, f.Name) &&
				!f.Hidden {
				outputs = append(outputs, f.Name)
			}
		})
		o := c.Flags().ShorthandLookup("o")
		if len(outputs) > 0 && (o == nil || !slices.Contains(outputs, o.Name)) {
			t.Errorf("%s: no -o for one of %v", c.CommandPath(), outputs)
		}
		for _, s := range c.Commands() {
			walk(s)
		}
	}
	walk(newRoot())
}

// An error about a file without a net names its contents.
func TestContents(t *testing.T) {
	t.Chdir(t.TempDir())
	mustRun(t, append([]string{"train", "--epochs", "1", "-o", "run", "-q", "--rna", "off"}, quick[:6]...)...)
	checkpoint := newestCheckpoint(t, "run")
	momentum := checkpoint + "/momentum.safetensors"
	for _, args := range []string{"eval --weights " + momentum + " --model lenet --data glyphs",
		"predict a.png --model lenet --weights " + momentum, "export " + momentum +
			" --model lenet --mean 0 --std 1 -o n.onnx",
		"extrapolate " + checkpoint + "/weights.safetensors " + momentum + " -o k.safetensors",
		"train --epochs 1 -o again --init " + momentum, "train --epochs 1 -o again --model lenet --init " + momentum} {
		fails(t, strings.Fields(args), "holds the state of an optimiser")
	}
	expect(t, "inspect "+momentum, "holds the state of an optimiser", "conv1.weight")
	unsayAll(t, momentum, checkpoint+"/exp_avg.safetensors") // as in older checkpoints
	fails(t, []string{"eval", "--weights", checkpoint + "/exp_avg.safetensors", "--model", "lenet", "--data", "glyphs"},
		"weights.safetensors lies beside it")

	shard := "model-00001-of-00002.safetensors"
	unsayAll(t, "run/best.safetensors", shard)
	expect(t, "inspect "+shard, "is shard 1 of 2 of a checkpoint")
	expect(t, "convert "+shard+" x.pt", "is shard 1 of 2 of a checkpoint")
	fails(t, []string{"eval", shard, "--model", "lenet"}, "is shard 1 of 2 of a checkpoint")
	fails(t, []string{"eval", "."}, "a checkpoint in 2 shards")
	index := "model.safetensors.index.json"
	if err := os.WriteFile(index,
		[]byte(`{"metadata":{},"weight_map":{"a":"`+shard+`","b":"model-00002-of-00002.safetensors"}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"inspect " + index, "eval " + index, "convert " + index + " y.pt", "train --init " +
		index} {
		fails(t, strings.Fields(args),
			"model-00002-of-00002.safetensors: no such file or directory (a shard that "+index+" names)")
	}
	fails(t, []string{"inspect", "run/config.json"}, "is JSON, not weights")
}
