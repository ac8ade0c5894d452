package op

import "fmt"

// Images cuts a window out of each image, mirrors it where asked to and normalises it. For pixels [N,H,W,C], uint8, and
// crops [N,3], int32 (top, left, flip):
//
//	y[n,c,i,j] = (p/255 − Mean[c])/Std[c],  p = pixels[n, top+i, left+(flip ? Width−1−j : j), c]
//
// with p = 0 outside the image.
type Images struct {
	DType         DType // of the result
	Height, Width int   // of the result
	Mean, Std     []float64
}

// Kind is "images".
func (Images) Kind() string { return "images" }

func (o Images) String() string {
	return fmt.Sprintf("images{%v, %d×%d, mean %v, std %v}", o.DType, o.Height, o.Width, o.Mean, o.Std)
}

// Infer gives [N,C,Height,Width].
func (o Images) Infer(in ...Type) (Type, error) {
	_, err := check(o, in, operand{"pixels", 4, pixels}, operand{"crops", 2, integer})
	switch {
	case err != nil:
	case !o.DType.Float() || o.Height < 1 || o.Width < 1:
		err = wrong(o, in, "the result must be of a floating-point type and at least 1×1")
	case in[1].Shape[0] != in[0].Shape[0] || in[1].Shape[1] != 3:
		err = wrong(o, in, "crops must be [%d 3]", in[0].Shape[0])
	case len(o.Mean) != in[0].Shape[3] || len(o.Std) != in[0].Shape[3]:
		err = wrong(o, in, "mean and std must have %d values, one a channel", in[0].Shape[3])
	}
	for i := 0; err == nil && i < len(o.Std); i++ {
		if !(o.Std[i] > 0) {
			err = wrong(o, in, "standard deviations must be positive")
		}
	}
	if err != nil {
		return Type{}, err
	}
	return T(o.DType, in[0].Shape[0], in[0].Shape[3], o.Height, o.Width), nil
}

// Reads are the pixels of a crop inside the image, and all crops.
func (o Images) Reads(in ...Type) []int {
	x := in[0].Shape
	return []int{x[0] * min(o.Height, x[1]) * min(o.Width, x[2]) * x[3], in[1].Shape.Size()}
}

// Run normalises in float64.
func (o Images) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, images[float32], images[float64])
}

func images[T element](o Images, out Tensor, in []Tensor) {
	pix, crops, y := in[0].Data.([]uint8), in[1].Data.([]int32), vec[T](out)
	h, w, c := in[0].Shape[1], in[0].Shape[2], in[0].Shape[3]
	at := 0
	for n := range in[0].Shape[0] {
		top, left, flip := int(crops[3*n]), int(crops[3*n+1]), crops[3*n+2] != 0
		for k := range c {
			for i := range o.Height {
				for j := range o.Width {
					row, col := top+i, left+j
					if flip {
						col = left + o.Width - 1 - j
					}
					p := 0.0
					if row >= 0 && row < h && col >= 0 && col < w {
						p = float64(pix[((n*h+row)*w+col)*c+k]) / 255
					}
					y[at] = T((p - o.Mean[k]) / o.Std[k])
					at++
				}
			}
		}
	}
}
