package op_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"onlinerna/nn/internal/golden"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

// A float32 result is the float64 result, rounded once.
func TestFloat32IsRoundedOnce(t *testing.T) {
	wide := examples(op.Float64)
	for i, e := range examples(op.Float32) {
		in := e.operands(rand.New(rand.NewPCG(1, uint64(i))))
		in64 := make([]op.Tensor, len(in))
		for j, x := range in {
			in64[j] = golden.Convert(x, op.Float64)
		}
		got := compute(t, e.op, in...)
		want := golden.Convert(compute(t, wide[i].op, in64...), op.Float32)
		if !reflect.DeepEqual(got.Data, want.Data) {
			t.Errorf("%v: float32 gives %v, float64 %v", e.op, got.Data, want.Data)
		}
	}
}

// Run overwrites the old content of out, repeats bit for bit and leaves its operands alone.
func TestRunIsAFunction(t *testing.T) {
	for _, d := range []op.DType{op.Float32, op.Float64} {
		for i, e := range examples(d) {
			in := e.operands(rand.New(rand.NewPCG(2, uint64(i))))
			first := compute(t, e.op, in...)
			before := fmt.Sprint(in)
			again := op.New(first.Type())
			set(again, 1e30)
			if err := e.op.Run(again, in...); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(first, again) {
				t.Errorf("%v: %v, then %v", e.op, first, again)
			}
			if after := fmt.Sprint(in); before != after {
				t.Errorf("%v changes its operands from %s to %s", e.op, before, after)
			}
		}
	}
}

// Views are parts of their operand, and in-place ops may have their result there.
func TestStorage(t *testing.T) {
	views, inPlace := 0, 0
	for i, e := range examples(op.Float32) {
		in := e.operands(rand.New(rand.NewPCG(3, uint64(i))))
		y := compute(t, e.op, in...)
		if v, ok := e.op.(op.View); ok {
			views++
			from := v.ViewOffset(e.in[0])
			if part := golden.Floats(in[0])[from:][:y.Shape.Size()]; !slices.Equal(golden.Floats(y), part) {
				t.Errorf("%v is %v, not the part %v from element %d on", e.op, y.Data, part, from)
			}
		}
		if _, ok := e.op.(op.InPlace); ok {
			inPlace++
			if err := e.op.Run(in[0], in...); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(in[0].Data, y.Data) {
				t.Errorf("%v in place gives %v, want %v", e.op, in[0].Data, y.Data)
			}
		}
	}
	if views != 3 || inPlace != 1 {
		t.Errorf("%d views and %d in-place ops, want 3 and 1", views, inPlace)
	}
}

// Every attribute is part of an op's string, and every op has a kind of its own.
func TestStringsKeepOpsApart(t *testing.T) {
	snake := regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
	kinds := map[string]reflect.Type{}
	for _, e := range examples(op.Float32) {
		kind, str := e.op.Kind(), e.op.String()
		if before, ok := kinds[kind]; ok && before != reflect.TypeOf(e.op) {
			t.Errorf("%T and %v have the same kind %s", e.op, before, kind)
		}
		kinds[kind] = reflect.TypeOf(e.op)
		if name, _, _ := strings.Cut(str, "{"); name != kind || !snake.MatchString(kind) {
			t.Errorf("%s of kind %s", str, kind)
		}
		if reflect.ValueOf(e.op).IsZero() {
			continue // has no attributes, or zeros that mean 1: below
		}
		if reflect.ValueOf(e.op).IsZero() {
			continue // no attributes, or zeros that stand for others
		}
		fields := 0
		alter(reflect.ValueOf(e.op), func(changed reflect.Value) {
			fields++
			if s := changed.Interface().(op.Op).String(); s == str {
				t.Errorf("%#v and %#v are both %s", changed, e.op, s)
			}
		})
		if want := reflect.TypeOf(e.op).NumField(); fields < want {
			t.Errorf("%v: %d changes for %d fields", e.op, fields, want)
		}
	}
	for _, same := range [][2]op.Op{
		{op.Conv2D{}, op.Conv2D{Stride: [2]int{1, 1}, Dilation: [2]int{1, 1}, Groups: 1}},
		{op.MaxPool{Kernel: [2]int{2, 3}}, op.MaxPool{Kernel: [2]int{2, 3}, Stride: [2]int{2, 3}}},
		{op.AvgPool{Kernel: [2]int{2, 3}}, op.AvgPool{Kernel: [2]int{2, 3}, Stride: [2]int{2, 3}}},
		{op.Shortcut{Channels: 3}, op.Shortcut{Stride: 1, Channels: 3}},
	} {
		if a, b := same[0].String(), same[1].String(); a != b {
			t.Errorf("%s and %s are the same op", a, b)
		}
	}
}

// alter calls f with copies of v that differ from it in one number each, or in the length of a slice.
func alter(v reflect.Value, f func(reflect.Value)) {
	copied := func(change func(c reflect.Value)) {
		c := reflect.New(v.Type()).Elem()
		c.Set(v)
		change(c)
		f(c)
	}
	if e, ok := v.Interface().(expr.Expr); ok {
		f(reflect.ValueOf(e.Shift(1)))
		return
	}
	switch v.Kind() {
	case reflect.Int:
		copied(func(c reflect.Value) { c.SetInt(v.Int() + 1) })
		copied(func(c reflect.Value) { c.SetInt(-v.Int() - 1) })
	case reflect.Uint8:
		copied(func(c reflect.Value) { c.SetUint(v.Uint() + 1) })
	case reflect.Float64:
		copied(func(c reflect.Value) { c.SetFloat(v.Float() * (1 + 1e-15)) })
	case reflect.Bool:
		copied(func(c reflect.Value) { c.SetBool(!v.Bool()) })
	case reflect.Struct:
		for i := range v.NumField() {
			alter(v.Field(i), func(x reflect.Value) { copied(func(c reflect.Value) { c.Field(i).Set(x) }) })
		}
	case reflect.Array:
		for i := range v.Len() {
			alter(v.Index(i), func(x reflect.Value) { copied(func(c reflect.Value) { c.Index(i).Set(x) }) })
		}
	case reflect.Slice:
		copied(func(c reflect.Value) { c.SetLen(v.Len() - 1) })
		for i := range v.Len() {
			alter(v.Index(i), func(x reflect.Value) {
				copied(func(c reflect.Value) {
					c.Set(reflect.AppendSlice(reflect.MakeSlice(v.Type(), 0, v.Len()), v))
					c.Index(i).Set(x)
				})
			})
		}
	default:
		panic("attributes of type " + v.Type().String())
	}
}
