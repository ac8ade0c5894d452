package traintest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/rna"
	"onlinerna/train/hook"
)

// Small registers two linear nets of the means of an image's quarters, small-norm with batch normalisation and
// small-plain without. Golden files hold their numbers, in float64 on the reference device, where processors differ in
// the last digits alone.
var Small = sync.OnceFunc(func() {
	net := func(name string, norm bool) {
		nn.Register(nn.Architecture{Name: name, Family: "small", Size: 4, Channels: 1, Classes: 2,
			Build: func(b *nn.Builder, x *G.Node) *G.Node {
				half := b.Config().Size / 2
				x = b.AvgPool("pool", x, half, half, 0)
				if norm {
					x = b.BatchNorm("norm", x, 1)
				}
				return b.Linear("fc", b.Flatten("flatten", x), b.Config().Classes)
			}})
	}
	net("small-norm", true)
	net("small-plain", false)
})

// Lines writes a value of the form of JSON, a field a line; a list of numbers or texts is one line.
func Lines(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var tree any
	if err := json.Unmarshal(b, &tree); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	lines(&text, "", tree)
	return text.String()
}

func lines(text *strings.Builder, path string, tree any) {
	switch tree := tree.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(tree)) {
			lines(text, strings.TrimPrefix(path+"."+key, "."), tree[key])
		}
		return
	case []any:
		if slices.ContainsFunc(tree, func(x any) bool {
			switch x.(type) {
			case map[string]any, []any:
				return true
			}
			return false
		}) {
			for i, x := range tree {
				lines(text, fmt.Sprintf("%s[%d]", path, i), x)
			}
			return
		}
		fmt.Fprintf(text, "%s:", path)
		for _, x := range tree {
			fmt.Fprintf(text, " %s", scalar(x))
		}
		text.WriteByte('\n')
		return
	}
	fmt.Fprintf(text, "%s: %s\n", path, scalar(tree))
}

func scalar(x any) string {
	if x, ok := x.(float64); ok {
		return fmt.Sprintf("%.12g", x)
	}
	return fmt.Sprint(x)
}

// Row writes numbers with 12 digits.
func Row(x []float64) string {
	list := make([]string, len(x))
	for i, v := range x {
		list[i] = scalar(v)
	}
	return strings.Join(list, " ")
}

// Faults count calls, and let one of them fail.
type Faults struct {
	Calls, Fail int    // the latter is the number of the call that fails, from 1 on; 0 for none
	What        string // the call that failed
}

// Call returns the error of a call.
func (f *Faults) Call(what string) error {
	if f.Calls++; f.Calls != f.Fail {
		return nil
	}
	f.What = what
	return fmt.Errorf("%s fails", what)
}

// Fragile is a device whose operations on vectors of float64 may fail.
type Fragile struct {
	device.Device
	*Faults
}

// NewVector implements device.Device.
func (d Fragile) NewVector(n int) (device.Vector, error) {
	if err := d.Call("new vector"); err != nil {
		return nil, err
	}
	v, err := d.Device.NewVector(n)
	if err != nil {
		return nil, err
	}
	return fragile{v, d.Faults}, nil
}

// NewSpace implements hook.Spacer.
func (d Fragile) NewSpace(dim int) (rna.Space, error) {
	if err := d.Call("new space"); err != nil {
		return nil, err
	}
	return rna.NewHost64(dim, 1)
}

// SpaceBytes implements hook.Spacer.
func (d Fragile) SpaceBytes(dim, vectors int) int64 { return int64(8 * dim * vectors) }

var _ hook.Spacer = Fragile{}

type fragile struct {
	device.Vector
	*Faults
}

var _ device.Elements[float64] = fragile{}

func (v fragile) Elements() []float64 { return v.Vector.(device.Elements[float64]).Elements() }

func (v fragile) Copy(x device.Vector) error {
	if err := v.Call("copy"); err != nil {
		return err
	}
	return v.Vector.Copy(x)
}

func (v fragile) Fill(a float64) error {
	if err := v.Call("fill"); err != nil {
		return err
	}
	return v.Vector.Fill(a)
}

func (v fragile) AddScaled(a float64, x device.Vector) error {
	if err := v.Call("add scaled"); err != nil {
		return err
	}
	return v.Vector.AddScaled(a, x)
}

func (v fragile) Lerp(a float64, x device.Vector) error {
	if err := v.Call("lerp"); err != nil {
		return err
	}
	return v.Vector.Lerp(a, x)
}

func (v fragile) Finite() (bool, error) {
	if err := v.Call("finite"); err != nil {
		return false, err
	}
	return v.Vector.Finite()
}

func (v fragile) ReadAt64(dst []float64, off int) error {
	if err := v.Call("read"); err != nil {
		return err
	}
	return v.Vector.ReadAt64(dst, off)
}

func (v fragile) WriteAt64(src []float64, off int) error {
	if err := v.Call("write"); err != nil {
		return err
	}
	return v.Vector.WriteAt64(src, off)
}
