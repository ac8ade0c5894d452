package devicetest

import (
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
	for _, n := range []int{2, 3, 7, 1000} {
		s := &suite{dev: chunks{device.NewReference(op.Float64), n}, dtype: op.Float64, tolerance: 1e-12}
		s.programs(goTester{t})
	}
}
