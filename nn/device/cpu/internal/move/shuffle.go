package move

import (
	"slices"

	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu/internal/nhwc"
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/device/lower"
	"onlinerna/nn/op"
)

// A shuffle turns the channels of each pixel, a matrix of groups × each, into its transpose: channel i·each + j becomes
// channel j·groups + i.
type shuffle struct {
	pixels, groups, each int
	from                 []int // values: one with all channels, or one for each group
	to                   []int // likewise for each j
}

// shuffles matches [Concat +] Reshape + Permute + Reshape [+ Slices] of images that shuffle channels.
func shuffles(f *lower.Flow, first int) []work.Match {
	var s shuffle
	steps, x := []int{first}, f.Step(first)
	if o, ok := x.Op.(op.Concat); ok {
		next, ok := lower.Next[op.Reshape](f, first)
		if !ok || o.Axis != 1 || slices.ContainsFunc(x.In, func(v int) bool {
			return !x.Values[v].Type.Shape.Equal(x.InType(0).Shape)
		}) {
			return nil
		}
		s.from, x, steps = x.In, f.Step(next), append(steps, next)
	}
	split, ok := x.Op.(op.Reshape)
	if !ok || len(x.InType(0).Shape) != 4 || len(split.Shape) != 5 {
		return nil
	}
	turn, isTurn := lower.Next[op.Permute](f, steps[len(steps)-1])
	if !isTurn || !slices.Equal(f.Step(turn).Op.(op.Permute).Axes, []int{0, 2, 1, 3, 4}) {
		return nil
	}
	join, isJoin := lower.Next[op.Reshape](f, turn)
	if !isJoin || !f.Step(join).OutType().Shape.Equal(x.InType(0).Shape) {
		return nil
	}
	image, parts := x.InType(0).Shape, split.Shape
	s.groups, s.each = parts[1], parts[2]
	if s.groups < 2 || s.each < 2 || len(s.from) > 0 && len(s.from) != s.groups ||
		!parts.Equal(op.Shape{image[0], s.groups, s.each, image[2], image[3]}) {
		return nil
	}
	s.pixels, _ = nhwc.Pixels(image)
	if len(s.from) == 0 {
		s.from = []int{x.In[0]}
	}
	s.to = []int{f.Step(join).Out}
	steps = append(steps, turn, join)
	list := []work.Match{s.match(f, steps)}
	if cuts := s.cuts(f, join); len(cuts) > 0 {
		list = slices.Insert(list, 0, s.match(f, append(slices.Clone(steps), cuts...)))
	}
	return list
}

// cuts sets s.to to slices of the result of step join, one for each j, if nothing else reads it, and returns them.
func (s *shuffle) cuts(f *lower.Flow, join int) []int {
	readers := f.Readers(join)
	if f.Kept(join) || len(readers) != s.each {
		return nil
	}
	to := slices.Repeat([]int{-1}, s.each)
	for _, r := range readers {
		step := f.Step(r)
		cut, ok := step.Op.(op.Slice)
		if !ok {
			return nil
		}
		j := cut.From[1] / s.groups
		want := op.SliceAxis(f.Step(join).OutType().Shape, 1, j*s.groups, (j+1)*s.groups)
		if to[j] >= 0 || !slices.Equal(cut.From, want.From) || !slices.Equal(cut.To, want.To) {
			return nil
		}
		to[j] = step.Out
	}
	s.to = to
	return readers
}

func (s shuffle) match(f *lower.Flow, steps []int) work.Match {
	return work.Match{Steps: steps, Lower: func() (*work.Lowering, error) {
		first := f.Step(steps[0])
		if err := work.DataIn(first); err != nil {
			return nil, err
		}
		stored := !slices.ContainsFunc(s.from, func(v int) bool { return !work.IsStored(first.Values[v]) })
		l := &work.Lowering{Kernel: work.Kernel{Bind: func(st *work.Storage) []work.Phase {
			if stored {
				return shuffled(s, st, func(v int) []uint16 { return st.Pieces(v).Stored() })
			}
			return shuffled(s, st, st.Floats)
		}}}
		for _, v := range s.to {
			t := first.Values[v].Type
			l.Results = append(l.Results, lower.Result{Value: v, Layout: work.Layout(t, device.Data), Bytes: t.Bytes()})
		}
		if stored {
			l.Kernel.Take(0, append(slices.Clone(s.from), s.to...)...)
		}
		return l, nil
	}}
}

// shuffled is the phase for values of elements T.
func shuffled[T any](s shuffle, st *work.Storage, value func(v int) []T) []work.Phase {
	var from, to [][]T
	for _, v := range s.from {
		from = append(from, value(v))
	}
	for _, v := range s.to {
		to = append(to, value(v))
	}
	if st.Err != nil {
		return nil
	}
	channels := s.groups * s.each
	part := max(1, work.ElementBlock/channels)
	in, out := parts(from, s.groups, s.each), parts(to, s.each, s.groups)
	return []work.Phase{{Blocks: work.Ceil(s.pixels, part), Run: func(_, block int) {
		for p := block * part; p < min((block+1)*part, s.pixels); p++ {
			switch {
			case s.groups == 2 && len(to) == 1:
				alternate(to[0][p*channels:][:channels], in(0, p), in(1, p))
			case s.each == 2 && len(from) == 1:
				separate(out(0, p), out(1, p), from[0][p*channels:][:channels])
			default:
				for j := range s.each {
					row := out(j, p)
					for i := range row {
						row[i] = in(i, p)[j]
					}
				}
			}
		}
	}}}
}

// parts returns part i of a pixel, of n that have width channels each, of one value or of a value for each.
func parts[T any](values [][]T, n, width int) func(i, pixel int) []T {
	if len(values) == n {
		return func(i, pixel int) []T { return values[i][pixel*width:][:width] }
	}
	return func(i, pixel int) []T { return values[0][(pixel*n+i)*width:][:width] }
}

// alternate writes elements of a and b in turn.
func alternate[T any](dst, a, b []T) {
	b = b[:len(a)]
	for i, v := range a {
		pair := dst[2*i:][:2]
		pair[0], pair[1] = v, b[i]
	}
}

// separate is the inverse of alternate.
func separate[T any](a, b, src []T) {
	b = b[:len(a)]
	for i := range a {
		pair := src[2*i:][:2]
		a[i], b[i] = pair[0], pair[1]
	}
}
