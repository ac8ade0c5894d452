package devicetest

import (
	"errors"
	"strings"

	"onlinerna/nn/device"
	"onlinerna/nn/op"
)

// bogus is an op that no device has, and whose shapes never fit.
type bogus struct{}

func (bogus) Kind() string                      { return "bogus" }
func (bogus) String() string                    { return "bogus{7}" }
func (bogus) Infer(...op.Type) (op.Type, error) { return op.Type{}, errBogus }
func (bogus) Run(op.Tensor, ...op.Tensor) error { return errBogus }

var _ op.Op = bogus{}

var errBogus = errors.New("bogus: no operands fit")

// unsupported asks for an op that no device can have, and for operands that do not fit.
func (s *suite) unsupported(t tester) {
	a := op.Type{DType: s.dtype, Shape: op.Shape{2, 3}}
	b := op.Type{DType: s.dtype, Shape: op.Shape{2, 4}}
	for _, o := range []op.Op{bogus{}, op.Add{}, op.Linear{}} {
		g := &device.Group{
			Steps:   []device.Step{{Name: "layer", Op: o, In: []int{0, 1}, Out: 2}},
			Values:  []device.Value{s.outside(a), s.outside(b), {Name: "y", Type: a}},
			Inputs:  []int{0, 1},
			Outputs: []int{2},
		}
		_, err := s.dev.Describe(g)
		var u *device.UnsupportedError
		if !errors.As(err, &u) {
			t.Errorf("describe %v: error %v, want an UnsupportedError", g, err)
			continue
		}
		for _, want := range []string{s.dev.Name(), o.String(), a.String(), b.String()} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("describe %v: error %q does not name %s", g, err, want)
			}
		}
	}
}

// outside is a value of type t from outside.
func (s *suite) outside(t op.Type) device.Value {
	return device.Value{Name: "x", Type: t, Layout: s.dev.Layout(t, device.Data), Bytes: t.Bytes()}
}
