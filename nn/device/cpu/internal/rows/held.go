package rows

import (
	"onlinerna/nn/device/cpu/internal/vec"
	"onlinerna/nn/device/cpu/internal/work"
)

// held is an operand or a result of attention, rows of width elements, as float32: in place or, if it is stored as
// bfloat16, in room for rows of each worker.
type held struct {
	value, width int
	parts        []work.Part
	*work.Pieces
	rooms [][]float32
}

// hold takes room for rows of a value, unless that is negative.
func hold(r *work.Room, s work.Step, value, workers, rows, width int) held {
	h := held{value: value, width: width}
	if value >= 0 && (work.IsStored(s.Values[value]) || s.Values[value].Narrow) {
		h.parts = r.Each(workers, rows*vec.Padded(width))
	}
	return h
}

// bind returns h with its storage.
func (h held) bind(st *work.Storage) *held {
	if h.value >= 0 {
		h.Pieces = st.Pieces(h.value)
		h.rooms = st.Scratches(h.parts)
	}
	return &h
}

// read returns rows that are stride elements apart, the first at element at, and their distance.
func (h *held) read(worker, at, rows, stride int) (x []float32, lda int) {
	if h.Stored() == nil {
		return h.All()[at:], stride
	}
	x, lda = h.rooms[worker], vec.Padded(h.width)
	h.Copy(x, lda, at, rows, h.width, stride)
	return x, lda
}

// to returns the memory for such rows, and their distance; done stores them.
func (h *held) to(worker, at, stride int) (x []float32, ldc int) {
	if h.Stored() == nil {
		return h.All()[at:], stride
	}
	return h.rooms[worker], vec.Padded(h.width)
}

func (h *held) done(worker, at, rows, stride int) {
	if h.Stored() != nil {
		h.Store(h.rooms[worker], vec.Padded(h.width), at, rows, h.width, stride)
	}
}
