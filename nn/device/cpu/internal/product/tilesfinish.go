package product

import (
	"onlinerna/nn/device/cpu/internal/kern"
	"onlinerna/nn/device/cpu/internal/vec"
)

// In tiles, a folded normalisation scales the sums and not the weights: the sums wait in memory anyway.

// finish applies the normalisation, the addition and the ReLU to columns lo to hi of a block, whose sums are the rows of
// x, step apart. It reports whether it stored the result too.
func (k *tiledKernel) finish(worker int, g *tiledTarget, b *tiledBlock, lo, hi int, x []float32, step int) (stored bool) {
	if k.gain == nil && k.added == nil && !k.relu {
		return false
	}
	var gain, shift []float32
	if k.gain != nil {
		at := b.group * k.padded
		gain, shift = k.gain[at+lo:at+hi], k.shift[at+lo:at+hi]
	}
	half, dst := vec.StoredFor(k.level), k.dst.Stored()
	if half != nil && dst != nil && gain != nil && k.then == nil && k.add == nil && (k.added == nil || k.added.Stored() != nil) {
		k.lines(g, b, func(pixel, at, pixels, stride int) {
			to, from := dst[at+lo:], x[pixel*step:]
			switch {
			case k.added != nil && k.relu:
				half.AffineAddReLUMade(to, k.added.Stored()[at+lo:], from, gain, shift, hi-lo, stride, step, pixels)
			case k.added != nil:
				half.AffineAddMade(to, k.added.Stored()[at+lo:], from, gain, shift, hi-lo, stride, step, pixels)
			case k.relu:
				half.AffineReLUMade(to, from, gain, shift, hi-lo, stride, step, pixels)
			default:
				half.AffineMade(to, from, gain, shift, hi-lo, stride, step, pixels)
			}
		})
		return true
	}
	room := k.args[worker].room[:]
	k.lines(g, b, func(pixel, at, pixels, stride int) {
		for i := range pixels {
			row := x[(pixel+i)*step:][:hi-lo]
			var other []float32
			if k.added != nil {
				other = room[:hi-lo]
				k.added.Copy(other, hi-lo, at+lo+i*stride, 1, hi-lo, stride)
			}
			k.finishRow(row, other, gain, shift)
		}
	})
	return false
}

// storedGroup is the largest number of columns that are stored together, with room for the last vector.
const storedGroup = 5 * kern.TileWidth

var finishZeros [storedGroup]float32

// finishRow finishes a row. other, and gain with shift, may be nil.
func (k *tiledKernel) finishRow(row, other, gain, shift []float32) {
	v, zeros := k.vectors, finishZeros[:len(row)]
	switch {
	case gain == nil:
		if other != nil {
			v.Add(row, row, other)
		}
		if k.relu {
			v.ReLU(row, row)
		}
	case other != nil && k.relu:
		v.NormalizeAddReLU(row, row, other, zeros, gain, shift)
	case other != nil:
		v.NormalizeAdd(row, row, other, zeros, gain, shift)
	case k.relu:
		v.NormalizeReLU(row, row, zeros, gain, shift)
	default:
		v.Normalize(row, row, zeros, gain, shift)
	}
}
