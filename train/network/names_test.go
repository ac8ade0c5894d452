package network

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"onlinerna/nn"
	"onlinerna/train/safetensors"
	"onlinerna/train/statedict"
)

// TestNames reads lists of other programs' tensors: each identifies the wanted nets, also to users who load it in
// another one.
func TestNames(t *testing.T) {
	other := open(t, cpuDevice(t, 1), "lenet", 1)
	for file, want := range map[string]string{
		"densenet121_files.txt":        "densenet121", // the names of torchvision's file, not of its code
		"huggingface_resnet18.txt":     "resnet18",
		"huggingface_resnet50.txt":     "resnet50",
		"timm_efficientnet_b0.txt":     "efficientnet_b0 or tf_efficientnet_b0",
		"timm_convnext_tiny.txt":       "convnext_tiny",
		"timm_swin_t.txt":              "swin_t",
		"timm_mobilenetv3_large.txt":   "mobilenetv3_large_100 or tf_mobilenetv3_large_100",
		"timm_regnet_y_400mf.txt":      "regnet_y_400mf",
		"timm_mobilenet_v2.txt":        "mobilenet_v2",
		"timm_mnasnet1_0.txt":          "mnasnet1_0",
		"timm_vgg11_bn.txt":            "vgg11_bn",
		"torchvision_googlenet.txt":    "googlenet", // with auxiliary heads
		"torchvision_inception_v3.txt": "inception_v3",
	} {
		list := tensorList(t, filepath.Join("testdata", file))
		path := filepath.Join(t.TempDir(), "w.safetensors")
		zeros(t, path, list)
		f, err := statedict.Open(path, "")
		if err != nil {
			t.Fatal(err)
		}
		names := strings.Split(want, " or ")
		if got := Identify(f); !slices.Equal(got, names) {
			t.Errorf("%s is of %v, want %q", file, got, want)
		}
		for _, name := range names {
			m, err := nn.Build(name, nn.Config{Batch: 1, Mode: nn.Eval})
			if err != nil {
				t.Fatal(err)
			}
			if n := Outputs(f, m); n != 1000 {
				t.Errorf("%s has %d outputs", file, n)
			}
		}
		_, err = other.Load(path, LoadOptions{})
		if err == nil || !strings.Contains(err.Error(), "as their tensors are those of "+want+": give that model") {
			t.Errorf("%s in lenet: %v", file, err)
		}
		f.Close()
	}
}

// torchvision's auxiliary heads are dropped, also under a prefix.
func TestAuxiliaryHeads(t *testing.T) {
	for _, name := range []string{"googlenet", "inception_v3"} {
		m, err := nn.Build(name, nn.Config{Batch: 1, Mode: nn.Eval})
		if err != nil {
			t.Fatal(err)
		}
		for _, prefix := range []string{"", "model."} {
			list := tensorList(t, filepath.Join("testdata", "torchvision_"+name+".txt"))
			for i := range list {
				list[i].Name = prefix + list[i].Name
			}
			path := filepath.Join(t.TempDir(), "w.safetensors")
			zeros(t, path, list)
			f, err := statedict.Open(path, "")
			if err != nil {
				t.Fatal(err)
			}
			if got, want := len(within(f, m).Tensors), len(m.StateDict()); got != want || len(list) == want {
				t.Errorf("%s: %d tensors, want %d of %d", name, got, want, len(list))
			}
			f.Close()
		}
	}
}

// tensorList reads names and shapes, one tensor a line.
func tensorList(t *testing.T, path string) (list []safetensors.Tensor) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		name, shape, _ := strings.Cut(s.Text(), " ")
		x := safetensors.Tensor{Name: name, DType: safetensors.F32, Shape: []int{}}
		if strings.HasSuffix(name, "num_batches_tracked") {
			x.DType = safetensors.I64
		}
		for d := range strings.FieldsSeq(shape) {
			n, err := strconv.Atoi(d)
			if err != nil {
				t.Fatal(err)
			}
			x.Shape = append(x.Shape, n)
		}
		list = append(list, x)
	}
	return list
}
