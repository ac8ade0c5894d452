//go:build gpu && cgo

package net

import (
	"fmt"
	"slices"

	"onlinerna/cuda/dnn"
	"onlinerna/cuda/driver"
	"onlinerna/nn/device"
	"onlinerna/nn/device/lower"
	"onlinerna/nn/op"
)

// want is an operand in the form that the kernels need. An operand in another form is copied to the workspace.
type want struct {
	value int
	form  form
	dnn   bool // at a multiple of dnn.Align, for cuDNN
}

// move is the conversion of an operand to the wanted form, into the workspace at offset off.
type move struct {
	want
	have       form
	off, bytes int
}

// convert finishes a lowering: it reserves workspace for operands in other forms, or says why one cannot be converted.
func (d *Device) convert(g *device.Group, l *lowering) error {
	k := &l.Kernel
	for _, w := range k.wants {
		x := g.Values[w.value]
		have, ok := d.form(x.Layout)
		if !ok || have.last != w.form.last || x.Type.DType != op.Float32 && have != w.form {
			return lower.Reason(fmt.Sprintf("operand %s has layout %q, want %q", x.Name, x.Layout, d.layout(w.form)))
		}
		if have == w.form && !w.dnn || slices.ContainsFunc(k.moves, func(m move) bool { return m.value == w.value }) {
			continue
		}
		m := move{w, have, align(l.Workspace), w.form.bytes(x.Type)}
		l.Workspace = m.off + m.bytes
		k.moves = append(k.moves, m)
	}
	return nil
}

// convert adds the conversions of operands before the calls that follow.
func (b *binding) convert(moves []move) {
	for _, m := range moves {
		b.spans[m.value] = b.converted(m.want, m.have, b.work.Span(int64(m.off), int64(m.bytes)))
	}
}

// converted returns an operand in the wanted form: in place, in the narrow copy of its vector, or copied into space.
func (b *binding) converted(w want, have form, space driver.Span) driver.Span {
	s := b.spans[w.value]
	there := func(s driver.Span) bool { return !w.dnn || s.Offset()%dnn.Align == 0 }
	if have == w.form && there(s) {
		return s
	}
	if v := b.owner[w.value]; v != nil && !have.narrow && w.form.narrow && !w.form.scaled {
		narrow, err := v.narrow(s)
		if err != nil {
			b.fail(err)
			return space
		}
		if there(narrow) {
			return narrow
		}
	}
	b.recast(space, w.form, s, have)
	return space
}

// recast adds a copy from one form to another.
func (b *binding) recast(to driver.Span, want form, from driver.Span, have form) {
	if have == want {
		b.copy(to, from)
		return
	}
	var scale driver.Span
	inverse := have.scaled && !want.scaled
	if have.scaled != want.scaled {
		scale = b.d.scale()
	}
	name, n := "nn_rescale", from.Bytes()/4
	switch {
	case have.narrow && want.narrow:
		n = from.Bytes() / 2
	case have.narrow:
		name, n = "nn_widen", from.Bytes()/2
	case want.narrow:
		name = "nn_narrow"
	}
	c := *b
	c.narrow = have.narrow || want.narrow
	c.each("element.cu", name, int(n), from, to.Written(), scale, inverse)
	b.calls, b.err = c.calls, c.err
}
