package move

import (
	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/device/lower"
	"onlinerna/nn/op"
)

// boxes copies the moved elements. If the result is exactly the operand's storage, no phase is needed.
func boxes[O op.Mover](s work.Step, o O) (*work.Lowering, error) {
	types := make([]op.Type, len(s.In))
	for i := range s.In {
		types[i] = s.InType(i)
	}
	y := s.OutType()
	strides := work.DataStrides(y)
	moves := o.Moves(types...)
	covered, list := 0, make([]work.Box, len(moves))
	view := -1
	for i, m := range moves {
		from, to, src, dst := m.Along(work.Strides(s.InValue(m.Operand)), strides)
		list[i] = work.NewBox(m.Extent, from, to, src, dst)
		covered += m.Extent.Size()
		if m.Extent.Equal(y.Shape) && alike(m.Extent, src, dst) {
			view = from
		}
	}
	l := work.Data(s, func(st *work.Storage) []work.Phase {
		dst := st.Floats(s.Out)
		var phases []work.Phase
		if covered < y.Shape.Size() {
			phases = append(phases, work.Cleared(dst))
		}
		for i, m := range moves {
			src := st.Floats(s.In[m.Operand])
			if view >= 0 && len(src) > view && len(dst) > 0 && &src[view] == &dst[0] {
				return nil
			}
			phases = append(phases, list[i].Phase(dst, src))
		}
		return phases
	})
	if view >= 0 {
		l.Results[0].View = &lower.View{Value: s.In[moves[0].Operand], Offset: view * op.Float32.Size()}
	}
	return l, nil
}

// alike reports whether elements have the same order on both sides.
func alike(extent op.Shape, src, dst []int) bool {
	for i, n := range extent {
		if n > 1 && src[i] != dst[i] {
			return false
		}
	}
	return true
}

// tokens turns images into rows: their storage is the same.
func tokens(s work.Step, _ op.Tokens) (*work.Lowering, error) { return turnedRows(s) }

// planes turns rows into images.
func planes(s work.Step, _ op.Planes) (*work.Lowering, error) { return turnedRows(s) }

func turnedRows(s work.Step) (*work.Lowering, error) { return same(s, device.Data, device.Data) }

// taps turns weights into an image: their storage is the same unless they are stored as activations.
func taps(s work.Step, _ op.Taps) (*work.Lowering, error) {
	if work.Expect(s, device.Weight) == nil {
		return same(s, device.Weight, device.Data)
	}
	from, y := work.Strides(s.InValue(0)), s.OutType()
	box := work.NewBox(y.Shape, 0, 0, []int{0, from[0], from[3], from[1]}, work.DataStrides(y))
	return work.Data(s, func(st *work.Storage) []work.Phase {
		return []work.Phase{box.Phase(st.Floats(s.Out), st.Floats(s.In[0]))}
	}), nil
}

// filters turns an image into weights.
func filters(s work.Step, _ op.Filters) (*work.Lowering, error) {
	return same(s, device.Data, device.Weight)
}

// same lowers a step whose operand and result, of these roles, have the same storage.
func same(s work.Step, from, to device.Role) (*work.Lowering, error) {
	if err := work.Expect(s, from); err != nil {
		return nil, err
	}
	l := work.Result(s, work.Layout(s.OutType(), to), func(st *work.Storage) []work.Phase {
		x, dst := st.Pieces(s.In[0]), st.Pieces(s.Out)
		if st.Err != nil {
			return nil
		}
		return converted(dst, x, 0, s.OutType().Shape.Size())
	})
	l.Kernel.Take(0, s.In[0], s.Out)
	l.Results[0].View = &lower.View{Value: s.In[0]}
	return l, nil
}
