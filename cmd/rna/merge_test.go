package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"onlinerna/train/statedict"
)

// replace changes the text of a file.
func replace(t *testing.T, path, from, to string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, bytes.Replace(b, []byte(from), []byte(to), 1), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestMerge merges checkpoints of several formats with the command.
func TestMerge(t *testing.T) {
	data, err := filepath.Abs("../../train/statedict/testdata")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if err := os.CopyFS("in", os.DirFS(data)); err != nil {
		t.Fatal(err)
	}
	expect(t, "merge in/flat.dcp in/nested.dcp in/hub -o o --order given", "0.333333", "PyTorch distributed checkpoint",
		"5 tensors combined, 1 copied from the last file: steps; with config.json")
	expect(t, "merge o in/hub -o x.pt --by weights --weights 2,-1", "2.000000", "x.pt: 5 tensors combined")
	expect(t, "merge --base in/hub o x.pt -o y.safetensors --by ties", "by tensor", "y.safetensors: 5 tensors combined")
	expect(t, "merge in/plain.npz in/hub -o z.safetensors --strict=false", "left out: a.bias: in/hub has a.bias "+
		"BF16[7], which in/plain.npz lacks")
	expect(t, "merge o in/flat.dcp -o p.safetensors --by power-ema --steps 10,20 --sigma-rel 0.2",
		"away from the wanted one")
	code, out, _ := runRNA(t, strings.Fields("merge x.pt y.safetensors -o j.safetensors --by ema --decay 0.75 --json")...)
	var rep struct {
		Files []struct {
			Weight float64
		}
		Copied []string
	}
	if err := json.Unmarshal([]byte(out), &rep); err != nil || code != 0 || rep.Files[0].Weight != 0.75 ||
		rep.Copied[0] != "steps" {
		t.Errorf("%d, %v: %s", code, err, out)
	}
	adapter := t.TempDir()
	factors := filepath.Join(adapter, "adapter_model.safetensors")
	w, err := statedict.Create(factors, []statedict.Tensor{{Name: "q.lora_A.weight", DType: "F32", Shape: []int{1, 2}},
		{Name: "q.lora_B.weight", DType: "F32", Shape: []int{2, 1}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"q.lora_A.weight": {0, 0, 128, 63, 0, 0, 0, 64}, "q.lora_B.weight": {0, 0, 128,
		63, 0, 0, 0, 64}} {
		if err := w.WriteAt(name, b, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	fails(t, strings.Fields("merge "+adapter+" -o l.safetensors"), "--adapter delta merges the products of folders")
	expect(t, "merge "+adapter+" -o l.safetensors --adapter factors", "2 tensors combined")
	fails(t, strings.Fields("merge "+adapter+" -o l --adapter delta"), "an adapter is a folder with adapter_config.json")
	if err := os.WriteFile(filepath.Join(adapter, "adapter_config.json"), []byte(`{"r": 1, "lora_alpha": 2}`),
		0o644); err != nil {
		t.Fatal(err)
	}
	expect(t, "merge "+adapter+" -o l --adapter delta", "1.000000", "l: an adapter of the sum of the products")
	fails(t, strings.Fields("merge "+adapter+" -o ll --adapter delta --by rna"), "rna looks at the files")
	expect(t, "inspect in/flat.dcp in/nested.dcp", "PyTorch distributed checkpoint 4 138", "by mean, weights, ema, "+
		"wsm, power-ema, slerp, task, ties")
	fails(t, strings.Fields("merge o in/hub -o w.safetensors --by power-ema --steps 0,1"), "in/hub is of step 0: power-ema takes")
	expect(t, "inspect "+adapter+" l", "rna merge --adapter delta can combine them by mean, weights, ema, wsm")
	expect(t, "inspect in/plain.npz in/hub", "not compared, 1:", "a.bias: in/hub has a.bias BF16[7], which in/plain.npz lacks",
		"rna merge --strict=false can combine them by mean")
	expect(t, "verify o x.pt in/flat.dcp", "o/model.safetensors: whole", "x.pt: whole", "in/flat.dcp: read")
	expect(t, "merge o in/hub -o s --shard-size 200B", "shards")
	expect(t, "verify s", "s/model.safetensors.index.json: whole")
	replace(t, "s/model.safetensors.index.json", "total_size\": ", "total_size\": 1")
	fails(t, []string{"verify", "s"}, "1 of")
	shard := "in/hub/model-00001-of-00002.safetensors"
	for args, want := range map[string]string{
		"merge x.pt in/hub -o o":                                       "is there and not empty",
		"merge o in/hub -o w.gguf":                                     ".safetensors, .pt, .pth and folders",
		"merge o in/hub -o w.safetensors --shard-size 5GB":             "--shard-size is for a folder",
		"merge o in/hub -o w.safetensors --resume":                     "shards are resumed, name a folder",
		"merge o in/hub -o w.safetensors --by ties":                    "needs --base",
		"merge o in/hub -o w.safetensors --decay 0.5":                  "--decay is not for --by mean",
		"merge o in/hub -o w.safetensors --by mode":                    `unknown --by "mode"`,
		"merge o in/hub -o w.safetensors --by weights":                 "--by weights needs --weights",
		"merge o in/hub -o w.safetensors --by weights --weights 1,2,3": "3 weights for 2 files",
		"merge o in/hub o -o w.safetensors":                            "o is given twice",
		"merge o in/plain.npz -o w.safetensors":                        "in/plain.npz lacks a.bias BF16[7] of o",
		"merge o in/quantised.gguf -o w.safetensors":                   "quantised as Q8_0",
		"merge " + shard + " o -o w.safetensors": "beside it are model-00002-of-00002.safetensors, " +
			"model.safetensors.index.json",
		"merge -o w.safetensors": "no files",
	} {
		fails(t, strings.Fields(args), want)
	}
	if left, _ := filepath.Glob(".*"); left != nil {
		t.Errorf("left behind: %v", left)
	}
}
