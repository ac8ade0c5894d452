package catalogue

import (
	"encoding/hex"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"onlinerna/nn"
	_ "onlinerna/nn/zoo"
)

func TestItems(t *testing.T) {
	seen := map[string]bool{}
	for _, it := range All() {
		files, archives := it.Files != nil, it.Archives != nil
		if seen[dashed.Replace(it.Name)] || it.Unpacked > 0 != archives || files == archives {
			t.Errorf("%+v", it)
		}
		if found, ok := Find(strings.ToUpper(it.Name)); !ok || found.Name != it.Name {
			t.Errorf("%s finds %s", it.Name, found.Name)
		}
		seen[dashed.Replace(it.Name)] = true
		for _, f := range append(it.Files, it.Archives...) {
			want := 64
			if it.Kind == Weights {
				want = len(f.SHA256)
				if !strings.HasSuffix(f.Name, "-"+f.SHA256+".pth") || want < 8 {
					t.Errorf("%s: the sum %s is not that of its name", f.Name, f.SHA256)
				}
			}
			_, err := hex.DecodeString(f.SHA256)
			if err != nil || len(f.SHA256) != want || f.Size < 1000 || len(f.Addresses) == 0 {
				t.Errorf("%s: %+v, %v", it.Name, f, err)
			}
			for _, a := range f.Addresses {
				if u, err := url.Parse(a); err != nil || u.Host == "" || !strings.HasSuffix(u.Path, "/"+f.Name) {
					t.Errorf("%s: address %s, %v", it.Name, a, err)
				}
			}
		}
	}
}

// without are nets whose weights are all SWAG's, for non-commercial use: torchvision.txt lacks them.
var without = []string{"vit_h_14", "regnet_y_128gf"}

// auxiliary are the parameters of heads that a net's file has beside its own.
var auxiliary = map[string]int{"googlenet": 6_379_984, "inception_v3": 3_326_696}

// TestNets finds weights for each net with torchvision's shapes: those of 1000 classes, except timm's.
func TestNets(t *testing.T) {
	for _, a := range nn.Architectures() {
		timms := strings.Contains(a.Summary, "timm") || strings.Contains(a.Name, "_patch")
		if a.Classes != 1000 || timms || slices.Contains(without, a.Name) {
			continue
		}
		it, ok := Find(a.Name)
		if !ok || it.Kind != Weights || it.Net != a.Name {
			t.Errorf("%s: %+v", a.Name, it)
		}
		m, err := nn.Build(a.Name, nn.Config{Batch: 1, Mode: nn.Eval})
		if err != nil {
			t.Fatal(err)
		}
		if n := int64(4 * (m.NumParams() + auxiliary[a.Name])); it.Size() < n || it.Size() > n+n/50 {
			t.Errorf("%s: a file of %d bytes for %d parameters", a.Name, it.Size(), m.NumParams())
		}
	}
	if it, _ := Find("resnet50"); it.Files[0].Name != "resnet50-11ad3fa6.pth" {
		t.Error("not the default weights:", it)
	}
	if it, _ := Find("resnet50-v1"); it.Files[0].Name != "resnet50-0676ba61.pth" {
		t.Error(it)
	}
}

func TestLocate(t *testing.T) {
	cache := t.TempDir()
	t.Setenv(Variable, cache)
	t.Chdir(t.TempDir())
	locate := func(path string, kind Kind, want, fails string) {
		t.Helper()
		got, err := Locate(path, kind)
		if got != want || (err == nil) != (fails == "") || err != nil && !strings.Contains(err.Error(), fails) {
			t.Errorf("%s: %q, %v, want %q, %q", path, got, err, want, fails)
		}
	}
	locate("", Images, "", "")
	locate("photos", Images, "photos", "")
	locate("resnet50", Images, "resnet50", "")
	locate("cifr10", Images, "cifr10", `cifr10: no such file or directory, did you mean cifar10 of "rna get"?`)
	locate("resnt18", Weights, "resnt18", `did you mean resnet18 of "rna get"?`)
	for _, path := range []string{"resnt18.pth", "./my/resnt18", "best"} {
		locate(path, Weights, path, "")
	}
	locate("CIFAR-10", Images, "",
		`CIFAR-10 is not here: "rna get cifar10" downloads it (170 MB) to `+filepath.Join(cache, "data", "cifar10"))
	locate("resnet50", Weights, "", `"rna get resnet50" downloads it (103 MB)`)
	there := filepath.Join(cache, "data", "cifar10")
	if err := os.MkdirAll(there, 0o777); err != nil {
		t.Fatal(err)
	}
	locate("cifar10", Images, there, "")
	if err := os.Mkdir("cifar10", 0o777); err != nil {
		t.Fatal(err)
	}
	locate("cifar10", Images, "cifar10", "") // the user's own
	weights := filepath.Join(cache, "weights", "resnet50-11ad3fa6.pth")
	if err := os.MkdirAll(filepath.Dir(weights), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(weights, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	locate("resnet50", Weights, weights, "")
	locate("resnet50_v2", Weights, weights, "")
}
