// Package elementwise has ops whose result depends element by element on operands of the same layout.
package elementwise

import (
	"onlinerna/nn/device/cpu/internal/vec"
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/device/lower"
	"onlinerna/nn/op"
)

// Patterns returns the patterns of this package's ops for the given number of workers.
func Patterns(workers int) []work.Pattern {
	return []work.Pattern{
		alone[op.ReLU](workers, func(k *vec.Set, dst []float32, in [][]float32) { k.ReLU(dst, in[0]) },
			func(k *vec.Stored, dst []uint16, in [][]uint16) { k.ReLU(dst, in[0]) }),
		alone[op.ReLUGrad](workers, func(k *vec.Set, dst []float32, in [][]float32) { k.ReLUGrad(dst, in[0], in[1]) },
			func(k *vec.Stored, dst []uint16, in [][]uint16) { k.ReLUGrad(dst, in[0], in[1]) }),
		alone[op.Add](workers, func(k *vec.Set, dst []float32, in [][]float32) { k.Add(dst, in[0], in[1]) },
			func(k *vec.Stored, dst []uint16, in [][]uint16) { k.Add(dst, in[0], in[1]) }),
	}
}

// alone is the pattern of a single op. body gets a block of the result and the same elements of the operands; half does
// if all are stored as bfloat16.
func alone[O op.Op](workers int, body func(k *vec.Set, dst []float32, in [][]float32),
	half func(k *vec.Stored, dst []uint16, in [][]uint16)) work.Pattern {
	return lower.Alone(func(s work.Step, _ O) (*work.Lowering, error) {
		layout := work.Order(s.InValue(0))
		for i := range s.In {
			if work.Order(s.InValue(i)) != layout {
				return nil, lower.Reason("operands have different layouts")
			}
		}
		l := work.Result(s, layout, func(st *work.Storage) []work.Phase {
			dst, size, piece := st.Pieces(s.Out), s.OutType().Shape.Size(), work.ElementBlock
			in, all := make([]*work.Pieces, len(s.In)), make([][]float32, len(s.In))
			stored := vec.StoredFor(st.Level)
			for i, v := range s.In {
				in[i] = st.Pieces(v)
				all[i] = in[i].All()
				if in[i].Stored() == nil {
					stored = nil
				}
			}
			if st.Err != nil {
				return nil
			}
			if dst.Stored() != nil {
				piece = work.Piece
			}
			k := vec.To(st.Level, dst.All(), work.ElementBlock, all...)
			parts := make([][][]float32, workers)
			for i := range parts {
				parts[i] = make([][]float32, len(in))
			}
			halves := make([][][]uint16, workers)
			for i := range halves {
				halves[i] = make([][]uint16, len(in))
			}
			return []work.Phase{{Blocks: work.Ceil(size, work.ElementBlock), Run: func(worker, block int) {
				if stored != nil && dst.Stored() != nil {
					lo, hi := block*work.ElementBlock, min((block+1)*work.ElementBlock, size)
					for i, x := range in {
						halves[worker][i] = x.Stored()[lo:hi]
					}
					half(stored, dst.Stored()[lo:hi], halves[worker])
					return
				}
				last := min((block+1)*work.ElementBlock, size)
				for lo := block * work.ElementBlock; lo < last; lo += piece {
					hi := min(lo+piece, last)
					for i, x := range in {
						parts[worker][i] = x.Read(worker, lo, hi)
					}
					body(k, dst.To(worker, lo, hi), parts[worker])
					dst.Done(worker, lo, hi)
				}
			}}}
		})
		l.Kernel.Take(work.Piece, s.In...)
		l.Kernel.Take(work.Piece, s.Out)
		l.Results[0].Over = s.In
		return l, nil
	})
}
