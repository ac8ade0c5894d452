package neon

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// kernel writes a kernel and returns it, without a file.
func kernel(signature string, body func(k *Func)) *Func {
	k := &Func{name: "test", file: New("test")}
	k.layout(signature)
	body(k)
	k.allocate()
	return k
}

// panics returns the message of f's panic.
func panics(f func()) (message string) {
	defer func() {
		if r := recover(); r != nil {
			message = fmt.Sprint(r)
		}
	}()
	f()
	return ""
}

func wantPanic(t *testing.T, what, words string, f func()) {
	t.Helper()
	if got := panics(f); !strings.Contains(got, words) {
		t.Errorf("%s: the panic is %q, want one with %q", what, got, words)
	}
}

// A value from before two nested loops that the inner one reads keeps its register until the outer one ends.
func TestNestedLoops(t *testing.T) {
	var value Vec
	var inner, outer []Vec
	kernel("(x *float32, n int)", func(k *Func) {
		x, n := k.Arg("x"), k.Arg("n")
		value = k.LoadVec(16, x, 0)
		k.Label("outer")
		m := k.Int(3)
		k.Label("inner")
		sum := k.Op("fadd", S4, value, value)
		inner = append(inner, sum)
		k.StoreVec(16, sum, x, 0)
		k.SubsI(m, m, 1)
		k.Branch("NE", "inner")
		for range len(vectors) - 1 { // all registers except the value's
			outer = append(outer, k.LoadVec(16, x, 0))
		}
		for _, v := range outer {
			k.StoreVec(16, v, x, 0)
		}
		k.SubsI(n, n, 1)
		k.Branch("NE", "outer")
		k.Ret()
	})
	for _, v := range append(inner, outer...) {
		if v.n() == value.n() {
			t.Errorf("the value's register %v is another's while the loops run", value)
		}
	}
}

// Each register that an instruction writes is its own, even if nothing reads one of them.
func TestTwoWrites(t *testing.T) {
	var a, b Vec
	var live []Vec
	kernel("(x *float32)", func(k *Func) {
		x := k.Arg("x")
		for range len(vectors) - 2 {
			live = append(live, k.LoadVec(16, x, 0))
		}
		a, b = k.LoadTwo(x, 0)
		k.StoreVec(16, b, x, 0)
		for _, v := range live {
			k.StoreVec(16, v, x, 0)
		}
		k.Ret()
	})
	if a.n() == b.n() || slices.ContainsFunc(live, func(v Vec) bool { return v.n() == a.n() || v.n() == b.n() }) {
		t.Errorf("%v and %v are not registers of their own", a, b)
	}
}

// If all registers are taken, a result takes the register of an operand that is not read again; without such an operand
// the generator panics.
func TestAllRegisters(t *testing.T) {
	add := func(values int) (first, sum Vec) {
		kernel("(x *float32)", func(k *Func) {
			x := k.Arg("x")
			var live []Vec
			for range values {
				live = append(live, k.LoadVec(16, x, 0))
			}
			first, sum = live[0], k.Op("fadd", S4, live[0], live[1])
			for _, v := range append(live[1:], sum) {
				k.StoreVec(16, v, x, 0)
			}
			k.Ret()
		})
		return first, sum
	}
	if first, sum := add(len(vectors)); sum.n() != first.n() {
		t.Errorf("the sum is in %v, its operand was in %v", sum, first)
	}
	wantPanic(t, "33 vectors", "one register too many", func() { add(len(vectors) + 1) })
}

// The generator refuses code that would read a register that nothing wrote, or that was written in an earlier turn of a
// loop.
func TestMistakes(t *testing.T) {
	wantPanic(t, "a register that is not written", "reads a register that nothing wrote", func() {
		kernel("(x *float32)", func(k *Func) { k.StoreVec(16, k.vec(), k.Arg("x"), 0) })
	})
	wantPanic(t, "a value carried to the next turn", "jumps over", func() {
		kernel("(x *float32, n int)", func(k *Func) {
			x, n := k.Arg("x"), k.Arg("n")
			first := k.Int(1)
			k.Label("loop")
			k.IfZero(first, "later")
			v := k.LoadVec(16, x, 0)
			k.SetInt(first, 0)
			k.Label("later")
			k.StoreVec(16, v, x, 0)
			k.SubsI(n, n, 1)
			k.Branch("NE", "loop")
			k.Ret()
		})
	})
	wantPanic(t, "a label that is not there", "no label",
		func() { kernel("()", func(k *Func) { k.Branch("", "nowhere") }) })
	wantPanic(t, "two labels", "two labels", func() { kernel("()", func(k *Func) { k.Label("here"); k.Label("here") }) })
	wantPanic(t, "an argument that is not there", "no argument",
		func() { kernel("(x *float32)", func(k *Func) { k.Arg("y") }) })
	for offset, fails := range map[int]bool{0: false, 1008: false, 1024: true, 8: true, -16: true} {
		got := panics(func() {
			kernel("(x *float32)", func(k *Func) { a, b := k.LoadTwo(k.Arg("x"), offset); k.StoreTwo(a, b, k.Arg("x"), 0) })
		})
		if (got != "") != fails {
			t.Errorf("two registers at offset %d: %q", offset, got)
		}
	}
	for offset, fails := range map[int]bool{0: false, 4095 * 8: false, 4096 * 8: true, 4: true} {
		if got := panics(func() {
			kernel("(x *float32)",
				func(k *Func) { k.LoadVec(8, k.Arg("x"), offset) })
		}); (got != "") != fails {
			t.Errorf("8 bytes at offset %d: %q", offset, got)
		}
	}
}

func TestLayout(t *testing.T) {
	k := &Func{name: "test"}
	k.layout("(x, y []float32, n uint32, yes bool, a float32, p *byte, b float64) uint32")
	for name, want := range map[string]argument{
		"x_base": {0, 8}, "x_len": {8, 8}, "y_base": {24, 8}, "y_len": {32, 8}, "n": {48, 4}, "yes": {52, 1}, "a": {56, 4},
		"p": {64, 8}, "b": {72, 8}, "ret": {80, 4},
	} {
		if got := k.args[name]; got != want {
			t.Errorf("%s is %d bytes at %d, want %d at %d", name, got.size, got.offset, want.size, want.offset)
		}
	}
	if k.size != 84 {
		t.Errorf("arguments and results are %d bytes, want 84", k.size)
	}
}
