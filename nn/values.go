package nn

import (
	"fmt"
	"slices"
	"sort"
	"unsafe"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Values are the values of nodes of a Gorgonia graph, one after the other, as one vector that can be read and written:
// a Source64 and a Sink64 of package rna. They are looked up at each use, since solvers and machines may put others in
// their place. They are scalars and tensors of float32 or float64; tensors are contiguous and in row-major order.
type Values struct {
	nodes G.Nodes
	ends  []int // of each node's elements, from the first node's on
}

// NewValues makes a vector of the values of nodes, as G.Nodes of a model's weights. All have values by now.
func NewValues(nodes ...*G.Node) (*Values, error) {
	v := &Values{nodes: slices.Clone(nodes)}
	end := 0
	for _, n := range nodes {
		singles, doubles, err := elements(n)
		if err != nil {
			return nil, err
		}
		end += len(singles) + len(doubles)
		v.ends = append(v.ends, end)
	}
	if end == 0 {
		return nil, fmt.Errorf("nn: no nodes with values")
	}
	return v, nil
}

// elements returns the memory of a node's value, of one of the two types.
func elements(n *G.Node) (singles []float32, doubles []float64, err error) {
	switch t := n.Value().(type) {
	case nil:
		err = fmt.Errorf("nn: node %s has no value yet: give it one by gorgonia.WithInit, WithValue or Let", n.Name())
	case *G.F32: // of NewScalar
		return unsafe.Slice((*float32)(t), 1), nil, nil
	case *G.F64:
		return nil, unsafe.Slice((*float64)(t), 1), nil
	case *tensor.Dense:
		switch {
		case t.RequiresIterator() || !t.DataOrder().IsRowMajor():
			err = fmt.Errorf("nn: node %s has a value that is a view or not in row-major order", n.Name())
		case t.Dtype() == tensor.Float32:
			return t.Float32s(), nil, nil
		case t.Dtype() == tensor.Float64:
			return nil, t.Float64s(), nil
		default:
			err = fmt.Errorf("nn: node %s has elements of type %v: want float32 or float64", n.Name(), t.Dtype())
		}
	default:
		err = fmt.Errorf("nn: node %s has a value of type %T: want a *tensor.Dense, *gorgonia.F32 or *gorgonia.F64",
			n.Name(), t)
	}
	return nil, nil, err
}

// Len is the number of elements of all values.
func (v *Values) Len() int { return v.ends[len(v.ends)-1] }

// ReadAt copies the elements from off on into dst; those of float64 are rounded.
func (v *Values) ReadAt(dst []float32, off int) error { return each(v, dst, off, false) }

// ReadAt64 copies the elements from off on into dst.
func (v *Values) ReadAt64(dst []float64, off int) error { return each(v, dst, off, false) }

// WriteAt copies src over the elements from off on.
func (v *Values) WriteAt(src []float32, off int) error { return each(v, src, off, true) }

// WriteAt64 copies src over the elements from off on; it is rounded where they are float32.
func (v *Values) WriteAt64(src []float64, off int) error { return each(v, src, off, true) }

// each copies between x and the elements from off on.
func each[T float32 | float64](v *Values, x []T, off int, write bool) error {
	if off < 0 || len(x) > v.Len()-off {
		return fmt.Errorf("nn: elements %d to %d of %d", off, off+len(x), v.Len())
	}
	for i := sort.SearchInts(v.ends, off+1); len(x) > 0; i++ {
		start := 0
		if i > 0 {
			start = v.ends[i-1]
		}
		singles, doubles, err := elements(v.nodes[i])
		if err != nil {
			return err
		}
		if has, had := len(singles)+len(doubles), v.ends[i]-start; has != had {
			return fmt.Errorf("nn: node %s has %d elements, and had %d", v.nodes[i].Name(), has, had)
		}
		n := min(len(x), v.ends[i]-off)
		if singles != nil {
			exchange(x[:n], singles[off-start:], write)
		} else {
			exchange(x[:n], doubles[off-start:], write)
		}
		x, off = x[n:], off+n
	}
	return nil
}

func exchange[T, U float32 | float64](x []T, values []U, write bool) {
	for i := range x {
		if write {
			values[i] = U(x[i])
		} else {
			x[i] = T(values[i])
		}
	}
}
