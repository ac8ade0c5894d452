package devicetest

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"onlinerna/nn/device"
	"onlinerna/nn/op"
)

func reference(d op.DType) Open {
	return func() (device.Device, error) { return device.NewReference(d), nil }
}

func TestReference(t *testing.T) {
	for _, d := range []op.DType{op.Float32, op.Float64} {
		t.Run(d.String(), func(t *testing.T) { Run(t, reference(d), Options{}) })
	}
}

func TestReferenceEqualsItself(t *testing.T) {
	Equal(t, reference(op.Float32), reference(op.Float32))
}

// chunks is the reference device with groups of n consecutive steps.
type chunks struct {
	device.Device
	n int
}

var _ device.Grouper = chunks{}

func (c chunks) Group(p *device.Program) [][]int {
	var groups [][]int
	for i := range p.Steps {
		if i%c.n == 0 {
			groups = append(groups, nil)
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], i)
	}
	return groups
}

func TestGroups(t *testing.T) {
	for _, n := range []int{2, 5, 1000} {
		s := &suite{dev: chunks{device.NewReference(op.Float64), n}, dtype: op.Float64, tolerance: 1e-12}
		s.programs(goTester{t})
	}
}

// declaredKinds are the kinds of all ops in the source of package op.
func declaredKinds(t *testing.T) []string {
	files, err := filepath.Glob("../../op/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no source of package op: %v", err)
	}
	var all []string
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Name.Name != "Kind" || f.Body == nil {
				continue
			}
			kind, err := strconv.Unquote(f.Body.List[0].(*ast.ReturnStmt).Results[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatalf("%s: Kind does not return a constant: %v", name, err)
			}
			all = append(all, kind)
		}
	}
	return all
}

func TestEveryOpHasCases(t *testing.T) {
	cases := opCases(op.Float64)
	covered := kinds(cases)
	for _, kind := range declaredKinds(t) {
		if !slices.Contains(covered, kind) {
			t.Errorf("op %s has no cases", kind)
		}
	}

	var checked []string
	for _, c := range differentiable {
		n := newNet(op.Float64, c.name)
		c.build(n)
		for _, s := range n.Steps {
			checked = append(checked, s.Op.Kind())
		}
	}
	for _, c := range cases {
		in := make([]op.Type, len(c.in))
		for i, o := range c.in {
			in[i] = op.Type{DType: cmp.Or(o.dtype, op.Float64), Shape: o.shape}
		}
		o, ok := c.op.(op.Differentiable)
		if !ok || slices.Contains(checked, o.Kind()) {
			continue
		}
		terms, err := o.Gradients(in...)
		if err != nil {
			t.Errorf("%v: %v", o, err)
		}
		if slices.ContainsFunc(terms, func(t *op.Term) bool { return t != nil }) {
			t.Errorf("gradient of %s is not checked", o.Kind())
			checked = append(checked, o.Kind())
		}
	}
}

// TestLazy checks the device that the tests of others use for a pipeline.
func TestLazy(t *testing.T) {
	open := func() (device.Device, error) { return Lazy(device.NewReference(op.Float32)), nil }
	Run(t, open, Options{})
}
