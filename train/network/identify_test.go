package network

import (
	"encoding/binary"
	"encoding/json"
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

// Each net is identified by the names and shapes of its tensors, also with other classes, without the last layer and
// under a prefix, but not by a part of the tensors.
func TestIdentify(t *testing.T) {
	for _, a := range nn.Architectures() {
		if a.Name == "further_inputs" { // of another test
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
		names := []string{unsmoothed(a.Name)}
		if _, err := nn.Lookup(names[0]); err != nil {
			names[0] = a.Name
		}
		kind, size, _ := strings.Cut(a.Name, "_")
		if other, ok := map[string]string{"vit": "deit_", "deit": "vit_"}[kind]; ok && a.Size == 224 { // alike but for the normalisation
			if _, err := nn.Lookup(other + size); err == nil {
				names = append(names, other+size)
			}
		}
		if version, size, _ := strings.Cut(a.Name, "_"); strings.HasPrefix(version, "beit") && a.Size == 224 { // the same
			names = append(names, map[string]string{"beit": "beitv2_", "beitv2": "beit_"}[version]+size)
		}
		if m := windowed.FindString(a.Name); m != "" {
			names = nil
			for _, other := range nn.Architectures() {
				if strings.HasPrefix(other.Name, windowed.FindStringSubmatch(m)[1]+"_window") {
					names = append(names, other.Name)
				}
			}
		}
		native := names // also under a prefix

		if other := twin(a.Name); other != "" && m.Params[0].Name == "conv_stem.weight" { // timm's names
			names = append(slices.Clone(names), other)
			if !strings.HasPrefix(other, "efficientnet_b") {
				native = names
			}
		}
		if clips.MatchString(a.Name) || heads[a.Name] != "" {
			names = append(names, twin(a.Name))
			native = names
		}
		slices.Sort(names)
		more := append(slices.Clone(all), safetensors.Tensor{Name: "more", DType: safetensors.BF16, Shape: []int{1}})
		for i, c := range []struct {
			tensors []safetensors.Tensor
			want    []string
		}{{all, names}, {headless, names}, {under, native}, {all[1:], nil}, {more, nil}} {
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
