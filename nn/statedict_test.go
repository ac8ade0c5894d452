package nn

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn/op"
)

// goldenEntry is [name, shape, element type].
type goldenEntry struct {
	Name  string
	Shape op.Shape
	DType string
}

func (e *goldenEntry) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &[]any{&e.Name, &e.Shape, &e.DType})
}

func TestStateDict(t *testing.T) {
	b, err := os.ReadFile("testdata/state_dict.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct{ ResNet18, ResNet50 []goldenEntry }
	if err := json.Unmarshal(b, &golden); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]goldenEntry{"resnet18": golden.ResNet18, "resnet50": golden.ResNet50} {
		for _, mode := range []Mode{Train, Eval} {
			m, err := Build(name, Config{Batch: 1, Mode: mode})
			if err != nil {
				t.Fatal(err)
			}
			got := m.StateDict()
			if len(got) != len(want) || len(want) == 0 {
				t.Errorf("%s in %v has %d entries, want %d", name, mode, len(got), len(want))
				continue
			}
			for i, w := range want {
				if g := got[i]; g.Name != w.Name || !g.Shape.Equal(w.Shape) || g.DType != w.DType {
					t.Errorf("%s in %v: entry %d is %+v, want %+v", name, mode, i, g, w)
				}
			}
			checkEntries(t, m)
		}
	}
}

// checkEntries checks that entries point at the tensors that they name.
func checkEntries(t *testing.T, m *Model) {
	t.Helper()
	for _, e := range m.StateDict() {
		want := ""
		switch e.Kind {
		case Parameter:
			want = m.Params[e.Index].Name
		case RunningMean:
			want = m.Stats[e.Index].Name + ".running_mean"
		case RunningVar:
			want = m.Stats[e.Index].Name + ".running_var"
		case BatchesTracked:
			want = m.Stats[e.Index].Name + ".num_batches_tracked"
		}
		if e.Name != want {
			t.Errorf("entry %s points at %s", e.Name, want)
		}
	}
}

func TestLeNetNames(t *testing.T) {
	m, err := Build("lenet", Config{Batch: 1})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"conv1.weight[6 1 5 5]", "conv1.bias[6]", "conv2.weight[16 6 5 5]", "conv2.bias[16]",
		"fc1.weight[120 400]", "fc1.bias[120]", "fc2.weight[84 120]", "fc2.bias[84]", "fc3.weight[10 84]",
		"fc3.bias[10]",
	}
	for i, e := range m.StateDict() {
		if got := e.Name + e.Shape.String(); i >= len(want) || got != want[i] {
			t.Errorf("entry %d is %s", i, got)
		}
	}
	if len(m.StateDict()) != len(want) {
		t.Errorf("%d entries, want %d", len(m.StateDict()), len(want))
	}
}

// The tensors of a layer may be listed again.
func TestSharedLayer(t *testing.T) {
	build := func(layer string) (*Model, error) {
		a := Architecture{Name: "shared", Size: 4, Channels: 3, Classes: 2, Build: func(b *Builder, x *G.Node) *G.Node {
			x = b.BatchNorm("a.bn", b.Conv("a.conv", x, Conv{Filters: 3, Kernel: 1}), 1)
			b.Share("b.a", layer)
			b.Share("c.a", layer)
			return b.Linear("fc", b.GlobalAvgPool("pool", x), 2)
		}}
		return a.Model(Config{Batch: 1})
	}
	m, err := build("a")
	if err != nil {
		t.Fatal(err)
	}
	list := m.StateDict()
	if len(list) != 3*6+2 || len(m.Params) != 5 {
		t.Fatalf("%d entries and %d parameters", len(list), len(m.Params))
	}
	for i, e := range list[6:18] {
		first := list[i%6]
		want := []string{"b.", "c."}[i/6] + first.Name
		if e.Name != want || !e.Shared || first.Shared || e.Kind != first.Kind || e.Index != first.Index {
			t.Errorf("entry %d is %+v, want %s of %+v", 6+i, e, want, first)
		}
	}
	const want = "layer b.a shares the tensors of conv, which has none"
	if _, err := build("conv"); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

// The state dict has a parameter's stored shape, and the order that a net gives it.
func TestStoredShapeAndOrder(t *testing.T) {
	a := Architecture{Name: "stored", Size: 4, Channels: 3, Classes: 2, Build: func(b *Builder, x *G.Node) *G.Node {
		place := b.AddParam(Param{Name: "b.place", Shape: op.Shape{3, 16}, Stored: op.Shape{1, 3, 4, 4}})
		x = b.Add("placed", x, b.Reshape("image", place, 1, 3, 4, 4))
		x = b.Linear("a.fc", b.GlobalAvgPool("pool", x), 2)
		b.Order(func(name string) int { return int(name[0]) })
		return x
	}}
	m, err := a.Model(Config{Batch: 1})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range m.StateDict() {
		got = append(got, fmt.Sprint(e.Name, e.Shape))
		if p := m.Params[e.Index]; p.Name != e.Name {
			t.Errorf("%s is parameter %s", e.Name, p.Name)
		}
	}
	if want := []string{"a.fc.weight[2 3]", "a.fc.bias[2]", "b.place[1 3 4 4]"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	a.Build = func(b *Builder, x *G.Node) *G.Node {
		b.AddParam(Param{Name: "place", Shape: op.Shape{3, 16}, Stored: op.Shape{1, 3, 4, 5}})
		return b.Linear("fc", b.GlobalAvgPool("pool", x), 2)
	}
	if _, err := a.Model(Config{Batch: 1}); err == nil || !strings.Contains(err.Error(), "as many elements") {
		t.Errorf("another number of elements: %v", err)
	}
}
