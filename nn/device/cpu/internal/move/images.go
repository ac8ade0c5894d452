package move

import (
	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu/internal/nhwc"
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/op"
)

func images(s work.Step, o op.Images) (*work.Lowering, error) {
	if err := work.Expect(s, device.Data, device.Data); err != nil {
		return nil, err
	}
	from := s.InType(0).Shape // NHWC
	h, w, channels := from[1], from[2], from[3]
	to := nhwc.ImageOf(s.OutType().Shape)
	return nhwc.ByLine(s, func(st *work.Storage) func(worker, n, i int, line []float32) {
		pixels, crops, tables := work.Value[uint8](st, s.In[0]), work.Value[int32](st, s.In[1]), levels(o.Mean, o.Std)
		return func(_, n, i int, line []float32) {
			top, left, flip := int(crops[3*n])+i, int(crops[3*n+1]), crops[3*n+2] != 0
			// Columns lo to hi of the crop lie in the image.
			lo, hi := min(max(-left, 0), to.W), max(min(w-left, to.W), 0)
			if top < 0 || top >= h || lo >= hi {
				lo, hi = 0, 0
			}
			before, after := lo, to.W-hi
			if flip {
				before, after = after, before
			}
			black(line[:before*channels], tables)
			black(line[len(line)-after*channels:], tables)
			if lo == hi {
				return
			}
			src := pixels[((n*h+top)*w+left+lo)*channels:][:(hi-lo)*channels]
			inside := line[before*channels:][:len(src)]
			switch {
			case channels == 1 && !flip:
				lookUp(inside, src, &tables[0])
			case channels == 3 && !flip:
				lookUp3(inside, src, (*[3][256]float32)(tables))
			case channels == 3:
				lookUp3Backwards(inside, src, (*[3][256]float32)(tables))
			default:
				lookUpPixels(inside, src, tables, flip)
			}
		}
	}), nil
}

// levels maps, for each channel, each of the 256 levels to its normalised value.
func levels(mean, std []float64) [][256]float32 {
	tables := make([][256]float32, len(mean))
	for c := range tables {
		for p := range tables[c] {
			tables[c][p] = float32((float64(p)/255 - mean[c]) / std[c])
		}
	}
	return tables
}

// black fills pixels with the values of level 0.
func black(dst []float32, tables [][256]float32) {
	for ; len(dst) > 0; dst = dst[len(tables):] {
		for c := range tables {
			dst[c] = tables[c][0]
		}
	}
}

func lookUp(dst []float32, src []uint8, table *[256]float32) {
	dst = dst[:len(src)]
	for i, p := range src {
		dst[i] = table[p]
	}
}

func lookUp3(dst []float32, src []uint8, tables *[3][256]float32) {
	for len(src) >= 3 && len(dst) >= 3 {
		dst[0], dst[1], dst[2] = tables[0][src[0]], tables[1][src[1]], tables[2][src[2]]
		dst, src = dst[3:], src[3:]
	}
}

func lookUp3Backwards(dst []float32, src []uint8, tables *[3][256]float32) {
	for len(src) >= 3 && len(dst) >= 3 {
		p := src[len(src)-3:]
		dst[0], dst[1], dst[2] = tables[0][p[0]], tables[1][p[1]], tables[2][p[2]]
		dst, src = dst[3:], src[:len(src)-3]
	}
}

func lookUpPixels(dst []float32, src []uint8, tables [][256]float32, backwards bool) {
	channels := len(tables)
	for i := 0; i < len(src); i += channels {
		p := src[i:]
		if backwards {
			p = src[len(src)-channels-i:]
		}
		for c := range tables {
			dst[i+c] = tables[c][p[c]]
		}
	}
}
