package network

import (
	"image"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"onlinerna/nn"
	"onlinerna/train/safetensors"
	"onlinerna/train/statedict"
)

// TestFreshHead loads weights with another number of classes, without a head, and from a file of torch.save under a
// prefix.
func TestFreshHead(t *testing.T) {
	dev := cpuDevice(t, 2)
	dir := t.TempDir()
	from := open(t, dev, "conv6", 2)
	sixtyFourths(t, from)
	path := filepath.Join(dir, "two.safetensors")
	if err := from.SaveWeights(path, from.Params, from.Stats, Meta{}); err != nil {
		t.Fatal(err)
	}
	head := Head(from.Model())
	if len(head) != 2 {
		t.Fatalf("head %v", head)
	}
	headless := takeApart(t, path)
	headless.names = slices.DeleteFunc(headless.names, func(n string) bool { return slices.Contains(head, n) })
	headless.write(t, filepath.Join(dir, "none.safetensors"))
	below := takeApart(t, path)
	for i, n := range below.names {
		below.names[i] = "net.model." + n
		below.types[below.names[i]], below.shape[below.names[i]], below.data[below.names[i]] =
			below.types[n], below.shape[n], below.data[n]
	}
	below.names = append(below.names, "criterion.weight")
	below.types["criterion.weight"], below.shape["criterion.weight"], below.data["criterion.weight"] =
		safetensors.F32, []int{1}, []float64{1}
	below.write(t, filepath.Join(dir, "below.safetensors"))
	f, err := statedict.Open(filepath.Join(dir, "below.safetensors"), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if n := Outputs(f, from.Model()); n != 2 {
		t.Errorf("%d outputs, want 2", n)
	}
	if err := statedict.Convert(filepath.Join(dir, "below.pt"), f); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"two.safetensors", "none.safetensors", "below.safetensors", "below.pt"} {
		n := open(t, dev, "conv6", 5)
		before := numbers(t, n.Params)
		if _, err := n.Load(filepath.Join(dir, name), LoadOptions{}); err == nil || !strings.Contains(err.Error(), head[0]) {
			t.Errorf("%s: error %v", name, err)
		}
		l, err := n.Load(filepath.Join(dir, name), LoadOptions{FreshHead: true})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !slices.Equal(l.Fresh, head) {
			t.Errorf("%s: fresh %v, want %v", name, l.Fresh, head)
		}
		got, want := numbers(t, n.Params), numbers(t, from.Params)
		for i, s := range n.params {
			from, old := from.params[i], before[s.off:s.off+s.n]
			same := slices.Equal(got[s.off:s.off+s.n], old)
			if fresh := slices.Contains(head, s.name); fresh != same ||
				!fresh && !slices.Equal(got[s.off:s.off+s.n], want[from.off:from.off+from.n]) {
				t.Errorf("%s: %s: fresh %v, as before %v", name, s.name, fresh, same)
			}
		}
		if !slices.Equal(numbers(t, n.Stats), numbers(t, from.Stats)) {
			t.Errorf("%s: statistics differ", name)
		}
	}
	same := open(t, dev, "conv6", 2)
	if l, err := same.Load(path, LoadOptions{FreshHead: true}); err != nil || l.Fresh != nil {
		t.Errorf("fresh %v of the same size, %v", l.Fresh, err)
	}
	equal(t, "same size", same, from)
}

// A blank net equals the saved one after Load, and has no gradients before it is trained.
func TestBlank(t *testing.T) {
	dev := cpuDevice(t, 2)
	from := open(t, dev, "conv6", 4)
	sixtyFourths(t, from)
	path := filepath.Join(t.TempDir(), "weights.safetensors")
	if err := from.SaveWeights(path, from.Params, from.Stats, Meta{}); err != nil {
		t.Fatal(err)
	}
	n, err := Blank(dev, "conv6", from.Model().Config)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	if _, err := n.LoadWeights(path); err != nil {
		t.Fatal(err)
	}
	equal(t, "the loaded net", n, from)
	img := image.NewRGBA(image.Rect(0, 0, 40, 30))
	got, err := n.Predict(img, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want, err := from.Predict(img, nil); err != nil || !slices.Equal(got, want) {
		t.Errorf("predicted %v, want %v, %v", got, want, err)
	}
	if n.Grads != nil {
		t.Error("an evaluation made gradients")
	}
	b := noise(6, 32, 1)
	for _, n := range []*Network{n, from} {
		if _, _, err := n.Gradient(b, 0); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := numbers(t, n.Grads), numbers(t, from.Grads); !slices.Equal(got, want) {
		t.Error("gradients differ from those of the saved net")
	}
}

// TestTorchMeta takes the model from other programs' metadata, if nn has it.
func TestTorchMeta(t *testing.T) {
	for name, want := range map[string]Meta{
		"torchvision.pth": {Model: "resnet50", Epoch: 3},
		"timm.pth.tar":    {Epoch: 4}, // nn has no resnet51d
	} {
		got, err := ReadMeta("../torchfile/testdata/" + name)
		if err != nil || got.Model != want.Model || got.Epoch != want.Epoch {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if _, err := nn.Lookup("resnet51d"); err == nil {
		t.Error("resnet51d is a model: the test needs another")
	}
}
