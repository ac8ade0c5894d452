package imaging

import "math"

// Operator changes images as PIL's ImageEnhance, ImageOps and transform do, in place. It keeps its memory between
// calls. The zero value is ready; an Operator is for one goroutine.
type Operator struct {
	image Image // the result for an image, or the image to blend it with
}

// mix blends other (factor 0) and m (factor 1) into m, and extrapolates outside [0, 1], as PIL's blend in float32.
func mix(m *Image, factor float64, other func(i int) uint8) {
	if factor == 1 {
		return
	}
	f := float32(factor)
	inside := f >= 0 && f <= 1
	for i, v := range m.Pix {
		from := int32(other(i))
		if f == 0 {
			m.Pix[i] = uint8(from)
			continue
		}
		x := float32(from) + float32(f*float32(int32(v)-from))
		if inside {
			m.Pix[i] = uint8(x)
		} else {
			m.Pix[i] = uint8(min(max(x, 0), 255))
		}
	}
}

// Brightness blends m with black.
func (o *Operator) Brightness(m *Image, factor float64) { mix(m, factor, func(int) uint8 { return 0 }) }

// Color blends m with its gray image.
func (o *Operator) Color(m *Image, factor float64) {
	if m.Channels == 1 {
		return
	}
	o.image.Reset(m.Width, m.Height, 1)
	grayFromRGB(o.image.Pix, m.Pix)
	mix(m, factor, func(i int) uint8 { return o.image.Pix[i/3] })
}

// Contrast blends m with its mean gray.
func (o *Operator) Contrast(m *Image, factor float64) {
	sum, n := 0, m.Width*m.Height
	if m.Channels == 1 {
		for _, v := range m.Pix {
			sum += int(v)
		}
	} else {
		for i := range n {
			sum += int(luma(m.Pix[3*i], m.Pix[3*i+1], m.Pix[3*i+2]))
		}
	}
	mean := uint8(float64(sum)/float64(n) + 0.5)
	mix(m, factor, func(int) uint8 { return mean })
}

// Sharpness blends m with the output of PIL's SMOOTH filter.
func (o *Operator) Sharpness(m *Image, factor float64) {
	s := &o.image
	s.Reset(m.Width, m.Height, m.Channels)
	copy(s.Pix, m.Pix)
	ch, row := m.Channels, m.Width*m.Channels
	for y := 1; y < m.Height-1; y++ {
		for i := y*row + ch; i < (y+1)*row-ch; i++ {
			sum := 4 * int(m.Pix[i])
			for _, at := range [3]int{i - row, i, i + row} {
				sum += int(m.Pix[at-ch]) + int(m.Pix[at]) + int(m.Pix[at+ch])
			}
			s.Pix[i] = uint8((2*sum + 13) / 26)
		}
	}
	mix(m, factor, func(i int) uint8 { return s.Pix[i] })
}

// point maps each value by a function.
func point(m *Image, f func(v uint8) uint8) {
	var table [256]uint8
	for v := range table {
		table[v] = f(uint8(v))
	}
	for i, v := range m.Pix {
		m.Pix[i] = table[v]
	}
}

// Posterize keeps the given number of bits of each value.
func (o *Operator) Posterize(m *Image, bits int) {
	mask := uint8(0xff << (8 - min(max(bits, 0), 8)))
	point(m, func(v uint8) uint8 { return v & mask })
}

// Solarize inverts the values from threshold on.
func (o *Operator) Solarize(m *Image, threshold float64) {
	point(m, func(v uint8) uint8 {
		if float64(v) < threshold {
			return v
		}
		return 255 - v
	})
}

// SolarizeAdd adds to the values below 128, as timm's.
func (o *Operator) SolarizeAdd(m *Image, add int) {
	point(m, func(v uint8) uint8 {
		if v < 128 {
			return uint8(min(255, int(v)+add))
		}
		return v
	})
}

// Invert inverts all values.
func (o *Operator) Invert(m *Image) { point(m, func(v uint8) uint8 { return 255 - v }) }

// tables maps each channel by a table computed from its histogram.
func tables(m *Image, make func(h *[256]int) [256]uint8) {
	for c := range m.Channels {
		var h [256]int
		for i := c; i < len(m.Pix); i += m.Channels {
			h[m.Pix[i]]++
		}
		t := make(&h)
		for i := c; i < len(m.Pix); i += m.Channels {
			m.Pix[i] = t[m.Pix[i]]
		}
	}
}

// AutoContrast stretches the values of each channel to 0 … 255.
func (o *Operator) AutoContrast(m *Image) {
	tables(m, func(h *[256]int) (t [256]uint8) {
		lo, hi := 0, 255
		for lo < 255 && h[lo] == 0 {
			lo++
		}
		for hi > 0 && h[hi] == 0 {
			hi--
		}
		scale := 255 / float64(hi-lo)
		offset := float64(-float64(lo) * scale)
		for v := range t {
			if t[v] = uint8(v); hi > lo {
				t[v] = uint8(min(max(int(float64(float64(v)*scale)+offset), 0), 255))
			}
		}
		return t
	})
}

// Equalize makes the histogram of each channel about even.
func (o *Operator) Equalize(m *Image) {
	tables(m, func(h *[256]int) (t [256]uint8) {
		sum, last, values := 0, 0, 0
		for _, n := range h {
			if n > 0 {
				sum, last, values = sum+n, n, values+1
			}
		}
		step := (sum - last) / 255
		n := step / 2
		for v := range t {
			t[v] = uint8(v)
			if values > 1 && step > 0 {
				t[v] = uint8(min(n/step, 255))
				n += h[v]
			}
		}
		return t
	})
}

// Hue turns the hue of an image in colour by a part of the circle, in [−1/2, 1/2], in PIL's HSV of 8 bits a number.
func (o *Operator) Hue(m *Image, part float64) {
	if m.Channels == 1 {
		return
	}
	turn := uint8(int32(part * 255))
	for i := 0; i < len(m.Pix); i += 3 {
		p := m.Pix[i : i+3 : i+3]
		h, s, v := hsv(p[0], p[1], p[2])
		p[0], p[1], p[2] = fromHSV(h+turn, s, v)
	}
}

func hsv(r, g, b uint8) (h, s, v uint8) {
	most, least := max(r, g, b), min(r, g, b)
	if most == least {
		return 0, 0, most
	}
	range32 := float32(most - least)
	rc, gc, bc := float32(most-r)/range32, float32(most-g)/range32, float32(most-b)/range32
	var x float32
	switch most {
	case r:
		x = bc - gc
	case g:
		x = float32(2 + float64(rc) - float64(bc))
	default:
		x = float32(4 + float64(gc) - float64(rc))
	}
	x = float32(math.Mod(float64(x)/6+1, 1))
	return uint8(float64(x) * 255), uint8(float64(range32/float32(most)) * 255), most
}

func fromHSV(h, s, v uint8) (r, g, b uint8) {
	if s == 0 {
		return v, v, v
	}
	x := float64(float32(h)) * 6 / 255
	i := math.Floor(x)
	f := float32(x - i)
	fs := float32(float64(s) / 255)
	at := func(part float64) uint8 { return uint8(min(max(math.Round(float64(v)*(1-part)), 0), 255)) }
	p, q, t := at(float64(fs)), at(float64(float32(fs*f))), at(float64(float64(fs)*(1-float64(f))))
	switch int(i) % 6 {
	case 0:
		return v, t, p
	case 1:
		return q, v, p
	case 2:
		return p, v, t
	case 3:
		return p, q, v
	case 4:
		return t, p, v
	}
	return v, p, q
}

// FlipVertical mirrors m in place, top to bottom.
func (m *Image) FlipVertical() {
	for y := range m.Height / 2 {
		a, b := m.row(y), m.row(m.Height-1-y)
		for i := range a {
			a[i], b[i] = b[i], a[i]
		}
	}
}
