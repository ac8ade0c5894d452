package network

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"onlinerna/nn"
	"onlinerna/train/safetensors"
	"onlinerna/train/statedict"
)

// Nets are identified by the names and shapes of their tensors, also with other classes, without the last layer and
// under a prefix, but not by a part of the tensors.
func TestIdentify(t *testing.T) {
	alike, families := byTensors(t), map[string]bool{}
	for _, a := range nn.Architectures() {
		if a.Name == "further_inputs" { // of another test
			continue
		}
		// One net of a family suffices, and those that have others' tensors.
		if families[a.Family] && len(alike[signature(outline(a).Model)]) == 1 {
			continue
		}
		m, err := a.Model(nn.Config{Batch: 1, Mode: nn.Eval, Classes: 7})
		if err != nil {
			t.Fatal(err)
		}
		var all []safetensors.Tensor
		for _, e := range m.StateDict() {
			all = append(all, safetensors.Tensor{Name: e.Name, DType: safetensors.BF16, Shape: e.Shape})
		}
		headless := slices.DeleteFunc(slices.Clone(all), func(x safetensors.Tensor) bool {
			return slices.Contains(Head(m), x.Name)
		})
		var under []safetensors.Tensor
		for _, x := range all {
			x.Name = "net." + x.Name
			under = append(under, x)
		}
		names := alike[signature(m)]
		names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { // one with strides stands for them
			plain := unsmoothed(name)
			return plain != name && slices.Contains(names, plain)
		})
		native := names // also under a prefix
		if other := twin(a.Name); other != "" && m.Params[0].Name == "conv_stem.weight" && !slices.Contains(names, other) {
			names = append(slices.Clone(names), other) // timm's names
		}
		slices.Sort(names)
		more := append(slices.Clone(all), safetensors.Tensor{Name: "more", DType: safetensors.BF16, Shape: []int{1}})
		for i, c := range []struct {
			tensors []safetensors.Tensor
			want    []string
		}{{headless, names}, {all, names}, {under, native}, {all[1:], nil}, {more, nil}} {
			if i > 0 && families[a.Family] {
				continue
			}
			path := filepath.Join(t.TempDir(), "w.safetensors")
			zeros(t, path, c.tensors)
			f, err := statedict.Open(path, "")
			if err != nil {
				t.Fatal(err)
			}
			if got := Identify(f); !slices.Equal(got, c.want) {
				t.Errorf("%s, case %d: %v", a.Name, i, got)
			}
			f.Close()
		}
		families[a.Family] = true
	}
}

// Nets for grey images are identified, too, also those whose first convolution takes the pixels of squares.
func TestIdentifyGrey(t *testing.T) {
	for _, name := range []string{"resnet18", "tresnet_m"} {
		m, err := nn.Build(name, nn.Config{Batch: 1, Mode: nn.Eval, Channels: 1})
		if err != nil {
			t.Fatal(err)
		}
		var all []safetensors.Tensor
		for _, e := range m.StateDict() {
			all = append(all, safetensors.Tensor{Name: e.Name, DType: safetensors.BF16, Shape: e.Shape})
		}
		path := filepath.Join(t.TempDir(), "w.safetensors")
		zeros(t, path, all)
		f, err := statedict.Open(path, "")
		if err != nil {
			t.Fatal(err)
		}
		if got := Identify(f); !slices.Contains(got, name) {
			t.Errorf("%s: %v", name, got)
		}
		f.Close()
	}
}

// signature has the names and shapes of a model's tensors but those of buffers and of the sizes of the last layer.
func signature(m *nn.Model) string {
	var b strings.Builder
	head := Head(m)
	for _, e := range m.StateDict() {
		if e.Kind == nn.BatchesTracked || e.Kind == nn.Buffer {
			continue
		}
		shape := e.Shape
		if slices.Contains(head, e.Name) {
			shape = shape[1:]
		}
		fmt.Fprintln(&b, e.Name, shape)
	}
	return b.String()
}

// byTensors are the names of nets by the signature that they share.
func byTensors(t *testing.T) map[string][]string {
	t.Helper()
	names := map[string][]string{}
	for _, a := range nn.Architectures() {
		p := outline(a)
		if p == nil {
			t.Fatal(a.Name)
		}
		s := signature(p.Model)
		names[s] = append(names[s], a.Name)
	}
	return names
}

// layers describes what a net of images of a size computes.
func layers(t *testing.T, name string, size int) string {
	t.Helper()
	m, err := nn.Build(name, nn.Config{Batch: 1, Size: size, Mode: nn.Eval})
	if err != nil {
		return err.Error() // such as windows that do not fit
	}
	var b strings.Builder
	for _, n := range m.Graph.AllNodes() {
		switch o, ok := n.Op().(*nn.Op); {
		case ok:
			fmt.Fprintln(&b, o.Op(), n.Shape())
		case n.Value() != nil:
			data, err := binary.Append(nil, binary.LittleEndian, n.Value().Data())
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintln(&b, n.Shape(), crc32.ChecksumIEEE(data))
		}
	}
	return b.String()
}

// Nets for images of other channels are identified, also where tokens are before the first convolution or squares of
// pixels are its channels.
func TestIdentifyChannels(t *testing.T) {
	for _, name := range []string{"vit_tiny_patch16_224", "coat_lite_tiny", "efficientvim_m1", "tresnet_m"} {
		for _, channels := range []int{1, 4} {
			m, err := nn.Build(name, nn.Config{Batch: 1, Mode: nn.Eval, Channels: channels})
			if err != nil {
				t.Fatal(err)
			}
			var list []safetensors.Tensor
			for _, e := range m.StateDict() {
				list = append(list, safetensors.Tensor{Name: e.Name, DType: safetensors.F32, Shape: e.Shape})
			}
			path := filepath.Join(t.TempDir(), "w.safetensors")
			zeros(t, path, list)
			f, err := statedict.Open(path, "")
			if err != nil {
				t.Fatal(err)
			}
			if got := Identify(f); !slices.Contains(got, name) {
				t.Errorf("%s of %d channels: %v", name, channels, got)
			}
			f.Close()
		}
	}
}

// Of nets with the same tensors and other layers, weights of the one are not taken for those of the other without a
// doubt.
func TestRivals(t *testing.T) {
	for _, names := range byTensors(t) {
		if len(names) == 1 || strings.Contains(names[0], "narrow") {
			continue
		}
		first, err := nn.Lookup(names[0])
		if err != nil {
			t.Fatal(err)
		}
		own := layers(t, names[0], first.Size)
		for _, other := range names[1:] {
			if layers(t, other, first.Size) == own {
				continue
			}
			for _, pair := range [][2]string{{names[0], other}, {other, names[0]}} {
				doubt, err := (&Network{arch: pair[0]}).sameNet(nil, Meta{Architecture: strings.TrimPrefix(pair[1], "timm_")})
				if doubt == "" && err == nil {
					t.Errorf("weights of %s are taken for those of %s, whose layers differ", pair[1], pair[0])
				}
			}
		}
	}
}

// A net is found under its prefix among thousands of others: files with many prefixes take a fraction of a second, not
// minutes.
func TestManyPrefixes(t *testing.T) {
	m, err := nn.Build("resnet18", nn.Config{Batch: 1, Mode: nn.Eval})
	if err != nil {
		t.Fatal(err)
	}
	var many, beside, deep []safetensors.Tensor
	for i := range 20_000 {
		name := strconv.Itoa(i) + ".conv1.weight"
		many = append(many, safetensors.Tensor{Name: name, DType: safetensors.BF16, Shape: []int{1}})
		deep = append(deep, safetensors.Tensor{Name: "more.than." + name, DType: safetensors.BF16, Shape: []int{1}})
	}
	beside = slices.Clone(deep)
	for _, e := range m.StateDict() {
		beside = append(beside, safetensors.Tensor{Name: "z." + e.Name, DType: safetensors.BF16, Shape: e.Shape})
	}
	for i, c := range []struct {
		tensors []safetensors.Tensor
		want    []string
	}{{many, nil}, {deep, nil}, {beside, []string{"resnet18"}}} {
		path := filepath.Join(t.TempDir(), "w.safetensors")
		zeros(t, path, c.tensors)
		f, err := statedict.Open(path, "")
		if err != nil {
			t.Fatal(err)
		}
		Identify(f) // builds the nets
		start := time.Now()
		if got := Identify(f); !slices.Equal(got, c.want) {
			t.Errorf("case %d: %v", i, got)
		}
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("case %d took %v", i, took)
		}
		f.Close()
	}
}

// zeros writes sparse tensors of zeros.
func zeros(t *testing.T, path string, list []safetensors.Tensor) {
	t.Helper()
	header, at := map[string]any{}, int64(0)
	for _, x := range list {
		end := at + int64(x.Len())*int64(x.DType.Size())
		header[x.Name] = map[string]any{"dtype": x.DType, "shape": x.Shape, "data_offsets": [2]int64{at, end}}
		at = end
	}
	js, err := json.Marshal(header)
	if err == nil {
		err = os.WriteFile(path, append(binary.LittleEndian.AppendUint64(nil, uint64(len(js))), js...), 0o600)
	}
	if err == nil {
		err = os.Truncate(path, 8+int64(len(js))+at)
	}
	if err != nil {
		t.Fatal(err)
	}
}
