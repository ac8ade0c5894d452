package lower_test

import (
	"fmt"
	"slices"
	"testing"

	"onlinerna/nn/device"
	"onlinerna/nn/device/lower"
	"onlinerna/nn/op"
)

// steps writes each step with its operands and result.
func steps(p *device.Program) (all []string) {
	for _, s := range p.Steps {
		all = append(all, fmt.Sprintf("%s%v%d", s.Name, s.In, s.Out))
	}
	return all
}

func program() *device.Program {
	p := &device.Program{Values: make([]device.Value, 7), Keep: []int{6}}
	for i := range p.Values {
		p.Values[i] = device.Value{Name: fmt.Sprint("v", i), Type: op.T(op.Float32, i+1)}
	}
	for i, in := range [][]int{{0, 1}, {2}, {0}, {3}} {
		p.Steps = append(p.Steps, device.Step{Name: string(rune('a' + i)), Op: op.Add{}, In: in, Out: i + 2})
	}
	return p
}

func TestForward(t *testing.T) {
	p := program() // 2 = a(0, 1), 3 = b(2), 4 = c(0), 5 = d(3)
	if at := lower.Forward(p, 3); at != 2 || !slices.Equal(steps(p), []string{"a[0 1]2", "b[2]3", "d[3]5", "c[0]4"}) {
		t.Errorf("a step moved to %d: %v", at, steps(p))
	}
	if at := lower.Forward(p, 3); at != 0 || !slices.Equal(steps(p), []string{"c[0]4", "a[0 1]2", "b[2]3", "d[3]5"}) {
		t.Errorf("a step of inputs moved to %d: %v", at, steps(p))
	}
	if at := lower.Forward(p, 2); at != 2 {
		t.Errorf("a step behind its operand moved to %d", at)
	}
}

func TestRepeat(t *testing.T) {
	p := program()
	if v := lower.Repeat(p, 3, 0, 1); v != 8 || !slices.Equal(steps(p),
		[]string{"a[0 1]2", "b[2]3", "c[0]4", "a[0 1]7", "b[7]8", "d[3]5"}) {
		t.Errorf("value %d: %v", v, steps(p))
	}
	if a, b := p.Values[8], p.Values[3]; a.Name != b.Name || !a.Type.Equal(b.Type) {
		t.Errorf("a copy of %v is %v", b, a)
	}
	p.Steps[4].In[0] = 6
	if p.Steps[1].In[0] != 2 {
		t.Error("copies share their operands")
	}
}
