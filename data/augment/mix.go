package augment

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"onlinerna/data/random"
)

// Mix configures the mixing of a training batch: each image is mixed with the one before it, the first with the last.
// Mixup (Zhang et al. 2018) adds λ of an image and 1−λ of the other; cutmix (Yun et al. 2019) pastes a box of the
// other. Both draw one λ per batch from a beta distribution. If both are on, each batch uses either with equal
// probability, as in torchvision's references and timm.
//
// The goroutine that finishes a batch mixes it as bytes, not the device: this takes a few percent of the decoding time,
// runs in the background, and gives every device the same bits.
type Mix struct {
	Mixup, Cutmix float64 // parameter of the beta distribution, 0: none
}

// Check returns an error for a parameter out of range.
func (m Mix) Check() error {
	if !(m.Mixup >= 0 && m.Cutmix >= 0) || math.IsInf(m.Mixup, 0) || math.IsInf(m.Cutmix, 0) {
		return fmt.Errorf("mixup %g and cutmix %g: must be finite and not negative", m.Mixup, m.Cutmix)
	}
	return nil
}

// Active reports whether images are mixed.
func (m Mix) Active() bool { return m.Mixup > 0 || m.Cutmix > 0 }

// Images are the images of a batch, one after the other, each with its label and the label of the image mixed into it.
type Images struct {
	N, Height, Width, Channels int
	Pix                        []uint8 // [N, Height, Width, Channels]
	Labels, Other              []int32 // [N]
}

func (b *Images) image(n int) []uint8 {
	size := b.Height * b.Width * b.Channels
	return b.Pix[n*size : (n+1)*size]
}

// Apply mixes a batch, fills its other labels and returns the share that its own labels keep. It grows spare to an
// image.
func (m Mix) Apply(b Images, r *random.Rand, spare *[]uint8) (share float64) {
	cut := m.Cutmix > 0 && (m.Mixup == 0 || r.IntN(2) == 1)
	alpha := m.Mixup
	if cut {
		alpha = m.Cutmix
	}
	share = distuv.Beta{Alpha: alpha, Beta: alpha, Src: r}.Rand()
	size := b.Height * b.Width * b.Channels
	if cap(*spare) < size {
		*spare = make([]uint8, size)
	}
	last := (*spare)[:size]
	copy(last, b.image(b.N-1))
	var blend func(dst, other []uint8)
	if cut {
		x0, x1, y0, y1 := box(b.Width, b.Height, share, r)
		share = 1 - float64((x1-x0)*(y1-y0))/float64(b.Width*b.Height)
		blend = func(dst, other []uint8) {
			for y := y0; y < y1; y++ {
				lo, hi := (y*b.Width+x0)*b.Channels, (y*b.Width+x1)*b.Channels
				copy(dst[lo:hi], other[lo:hi])
			}
		}
	} else {
		own := uint32(math.Round(share * (1 << 16)))
		blend = func(dst, other []uint8) {
			rest := 1<<16 - own
			for i, v := range dst {
				dst[i] = uint8((own*uint32(v) + rest*uint32(other[i]) + 1<<15) >> 16)
			}
		}
	}
	for n := b.N - 1; n > 0; n-- {
		blend(b.image(n), b.image(n-1))
		b.Other[n] = b.Labels[n-1]
	}
	blend(b.image(0), last)
	b.Other[0] = b.Labels[b.N-1]
	return share
}

// box is the box of torchvision's RandomCutmix: area 1 − share around a random centre, clipped to the image.
func box(width, height int, share float64, r *random.Rand) (x0, x1, y0, y1 int) {
	cx, cy := r.IntN(width), r.IntN(height)
	half := 0.5 * math.Sqrt(1-share)
	w, h := int(half*float64(width)), int(half*float64(height))
	return max(cx-w, 0), min(cx+w, width), max(cy-h, 0), min(cy+h, height)
}
