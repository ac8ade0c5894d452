package cpu

import (
	"slices"
	"strings"
	"testing"

	"onlinerna/nn/op"
)

// A shuffle of channels, with the concatenation before it or the slices behind it, is one kernel with the bits of its
// ops.
func TestShuffles(t *testing.T) {
	for _, c := range []struct {
		n, groups, each, h, w int
		joined, cut           bool
		want                  string
	}{
		{n: 2, groups: 2, each: 13, h: 5, w: 7, joined: true, want: "concat reshape permute reshape"},
		{n: 3, groups: 29, each: 2, h: 4, w: 5, cut: true, want: "reshape permute reshape slice slice"},
		{n: 1, groups: 2, each: 40, h: 21, w: 22, want: "reshape permute reshape"},
		{n: 2, groups: 6, each: 2, h: 3, w: 3, want: "reshape permute reshape"},
		{n: 2, groups: 3, each: 4, h: 5, w: 2, joined: true, cut: true,
			want: "concat reshape permute reshape slice slice slice slice"},
		{n: 2, groups: 4, each: 3, h: 2, w: 3, want: "reshape permute reshape"},
		{n: 2, groups: 2, each: 2, h: 3, w: 5, joined: true, cut: true, want: "concat reshape permute reshape slice slice"},
	} {
		b := &builder{tb: t}
		channels := c.groups * c.each
		image := op.Shape{c.n, channels, c.h, c.w}
		var x int
		if c.joined {
			var parts []int
			for range c.groups {
				parts = append(parts, b.apply(op.ReLU{}, b.data(c.n, c.each, c.h, c.w)))
			}
			x = b.apply(op.Concat{Axis: 1}, parts...)
		} else {
			x = b.apply(op.ReLU{}, b.data(image...))
		}
		x = b.apply(op.Reshape{Shape: op.Shape{c.n, c.groups, c.each, c.h, c.w}}, x)
		x = b.apply(op.Permute{Axes: []int{0, 2, 1, 3, 4}}, x)
		x = b.apply(op.Reshape{Shape: image}, x)
		b.Keep = []int{x}
		if c.cut {
			b.Keep = nil
			for j := range c.each {
				b.Keep = append(b.Keep, b.apply(op.SliceAxis(image, 1, j*c.groups, (j+1)*c.groups), x))
			}
		}
		check := func(what string, d *Device) {
			groups := b.grouped(d)
			if kinds := groupedKinds(b, groups); !slices.Equal(kinds, []string{c.want}) {
				t.Fatalf("%+v, %s: groups %q", c, what, kinds)
			}
			alone, grouped := bind(t, d, &b.Program, b.weights, b.alone()), bind(t, d, &b.Program, b.weights, groups)
			alone.run(t)
			grouped.run(t)
			for _, v := range b.Keep {
				if !slices.Equal(alone.numbers(t, d, b.Values[v], v), grouped.numbers(t, d, b.Values[v], v)) {
					t.Errorf("%+v, %s: other bits", c, what)
				}
			}
		}
		check("float32", open(t, 2))
		narrowWays(t, check)
	}
}

// Other ways to move channels run op by op.
func TestNoShuffles(t *testing.T) {
	d := open(t, 1)
	for name, build := range map[string]func(b *builder){
		"other axes": func(b *builder) {
			x := b.apply(op.Reshape{Shape: op.Shape{2, 2, 4, 3, 3}}, b.data(2, 8, 3, 3))
			b.apply(op.Reshape{Shape: op.Shape{2, 8, 3, 3}}, b.apply(op.Permute{Axes: []int{0, 2, 1, 4, 3}}, x))
		},
		"another result": func(b *builder) {
			x := b.apply(op.Reshape{Shape: op.Shape{2, 2, 4, 3, 6}}, b.data(2, 8, 3, 6))
			b.apply(op.Reshape{Shape: op.Shape{2, 8, 6, 3}}, b.apply(op.Permute{Axes: []int{0, 2, 1, 3, 4}}, x))
		},
		"pixels split": func(b *builder) {
			x := b.apply(op.Reshape{Shape: op.Shape{2, 4, 2, 6, 3}}, b.data(2, 8, 6, 3))
			x = b.apply(op.Reshape{Shape: op.Shape{2, 4, 4, 3, 3}}, x)
			b.apply(op.Reshape{Shape: op.Shape{2, 8, 6, 3}}, b.apply(op.Permute{Axes: []int{0, 2, 1, 3, 4}}, x))
		},
		"too many parts": func(b *builder) {
			x := b.apply(op.Concat{Axis: 1}, b.data(2, 2, 2, 2), b.data(2, 2, 2, 2), b.data(2, 2, 2, 2), b.data(2, 2, 2, 2))
			x = b.apply(op.Reshape{Shape: op.Shape{2, 2, 4, 2, 2}}, x)
			x = b.apply(op.Permute{Axes: []int{0, 2, 1, 3, 4}}, x)
			b.apply(op.Reshape{Shape: op.Shape{2, 8, 2, 2}}, x)
		},
		"unequal parts": func(b *builder) {
			x := b.apply(op.Concat{Axis: 1}, b.data(2, 3, 2, 2), b.data(2, 5, 2, 2))
			x = b.apply(op.Reshape{Shape: op.Shape{2, 2, 4, 2, 2}}, x)
			x = b.apply(op.Permute{Axes: []int{0, 2, 1, 3, 4}}, x)
			b.apply(op.Reshape{Shape: op.Shape{2, 8, 2, 2}}, x)
		},
	} {
		b := &builder{tb: t}
		build(b)
		kinds := groupedKinds(b, b.grouped(d))
		if strings.HasSuffix(name, "parts") && slices.Equal(kinds, []string{"reshape permute reshape"}) {
			continue // the concatenation alone
		}
		if len(kinds) > 0 {
			t.Errorf("%s: groups %q", name, kinds)
		}
	}
}

// Slices that leave channels, repeat them or cut elsewhere are no part of a shuffle, nor are those of a result that is
// kept.
func TestShufflesWithOtherSlices(t *testing.T) {
	d := open(t, 1)
	image := op.Shape{2, 8, 3, 3}
	for _, c := range []struct {
		cuts [][2]int
		kept bool
	}{
		{cuts: [][2]int{{0, 4}, {0, 4}}}, {cuts: [][2]int{{0, 4}, {3, 7}}}, {cuts: [][2]int{{0, 4}, {4, 7}}},
		{cuts: [][2]int{{0, 4}}}, {cuts: [][2]int{{0, 4}, {4, 8}}, kept: true},
	} {
		b := &builder{tb: t}
		x := b.apply(op.Reshape{Shape: op.Shape{2, 4, 2, 3, 3}}, b.data(image...))
		x = b.apply(op.Reshape{Shape: image}, b.apply(op.Permute{Axes: []int{0, 2, 1, 3, 4}}, x))
		for _, cut := range c.cuts {
			b.apply(op.SliceAxis(image, 1, cut[0], cut[1]), x)
		}
		if c.kept {
			b.Keep = []int{x}
		}
		if kinds := groupedKinds(b, b.grouped(d)); !slices.Equal(kinds, []string{"reshape permute reshape"}) {
			t.Errorf("%+v: groups %q", c, kinds)
		}
	}
}
