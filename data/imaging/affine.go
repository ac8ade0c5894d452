package imaging

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
)

// Affine maps the pixel (x, y) of a result to the place (ax + by + c, dx + ey + f) of the source: {a, b, c, d, e, f},
// as the data of PIL's transform(AFFINE).
type Affine [6]float64

// ShearX, ShearY and Shift are the simplest: x + v·y, v·x + y, and (x+dx, y+dy).
func ShearX(v float64) Affine { return Affine{1, v, 0, 0, 1, 0} }

// ShearY is described with ShearX.
func ShearY(v float64) Affine { return Affine{1, 0, 0, v, 1, 0} }

// Shift is described with ShearX.
func Shift(dx, dy float64) Affine { return Affine{1, 0, dx, 0, 1, dy} }

// ShearAngles is the matrix of torchvision's affine for a shear by angles in degrees around the corner (0, 0).
func ShearAngles(x, y float64) Affine {
	sinX, cosX := sincos(radians(x))
	sinY, cosY := sincos(radians(y))
	tanX := quotient(sinX, cosX)
	cos, sin := nearest64(cosY), -nearest64(sinY) // of 0 − y
	a := cos / cos
	b := -cos * tanX / cos
	c := sin / cos
	d := float64(-sin*tanX/cos) + 1
	return Affine{d, -b, 0, -c, a, 0}
}

// Rotation turns an image of width×height by degrees counter-clockwise round its centre, as PIL's rotate.
func Rotation(degrees float64, width, height int) Affine {
	angle := -radians(degrees)
	bigSin, bigCos := sincos(angle)
	cos, sin := round15(nearest64(bigCos)), round15(nearest64(bigSin))
	m := Affine{cos, sin, 0, -sin, cos, 0}
	cx, cy := float64(width)/2, float64(height)/2
	m[2] = float64(float64(m[0]*-cx)+float64(m[1]*-cy)) + m[2] + cx
	m[5] = float64(float64(m[3]*-cx)+float64(m[4]*-cy)) + m[5] + cy
	return m
}

// degree is that of Python's radians: π/180 of float64s.
var degree = pi / 180

var pi = math.Pi // a variable: constants are exact

func radians(degrees float64) float64 { return degrees * degree }

// round15 rounds to 15 decimals.
func round15(x float64) float64 {
	x, _ = strconv.ParseFloat(strconv.FormatFloat(x, 'f', 15, 64), 64)
	return x
}

// sincos is the sine and the cosine to about 100 bits: rounded, they equal good C libraries and are the same on every
// machine.
func sincos(x float64) (sin, cos *big.Float) {
	number := func(v float64) *big.Float { return new(big.Float).SetPrec(128).SetFloat64(v) }
	sin, cos = number(0), number(1)
	term, arg := number(1), number(x)
	for k := 1; k < 60; k++ {
		term.Mul(term, arg)
		term.Quo(term, number(float64(k)))
		sum := cos
		if k%2 == 1 {
			sum = sin
		}
		if k%4 >= 2 {
			sum.Sub(sum, term)
		} else {
			sum.Add(sum, term)
		}
	}
	return sin, cos
}

func nearest64(x *big.Float) float64 { v, _ := x.Float64(); return v }

func quotient(a, b *big.Float) float64 { return nearest64(new(big.Float).SetPrec(128).Quo(a, b)) }

// Transform transforms m as PIL's transform: each pixel gets the sample at its place, or fill, a value a channel, for
// a place outside. Nil fill is black.
func (o *Operator) Transform(m *Image, a Affine, how Interpolation, fill []uint8) error {
	if err := m.check(); err != nil {
		return err
	}
	if len(fill) != 0 && len(fill) != m.Channels {
		return fmt.Errorf("%d fill values for an image of %d channels", len(fill), m.Channels)
	}
	out := &o.image
	out.Reset(m.Width, m.Height, m.Channels)
	if len(fill) == 0 {
		clear(out.Pix)
	} else {
		for i := range out.Pix {
			out.Pix[i] = fill[i%len(fill)]
		}
	}
	switch {
	case how == Nearest && a[1] == 0 && a[3] == 0:
		scaled(out, m, a)
	case how == Nearest && a.small(m.Width, m.Height):
		fixed(out, m, a)
	default:
		sampled(out, m, a, how)
	}
	m.Pix, out.Pix = out.Pix, m.Pix
	return nil
}

// Rotate rotates m as PIL's rotate, which is exact for multiples of 90°.
func (o *Operator) Rotate(m *Image, degrees float64, how Interpolation, fill []uint8) error {
	turn := math.Mod(degrees, 360)
	if turn < 0 {
		turn += 360
	}
	quarter := turn == 90 || turn == 270
	if turn != 0 && turn != 180 && !(quarter && m.Width == m.Height) {
		return o.Transform(m, Rotation(turn, m.Width, m.Height), how, fill)
	}
	if err := m.check(); err != nil {
		return err
	}
	out := &o.image
	out.Reset(m.Width, m.Height, m.Channels)
	w, h, ch := m.Width, m.Height, m.Channels
	for y := range h {
		for x := range w {
			sx, sy := x, y
			switch turn {
			case 90:
				sx, sy = w-1-y, x
			case 180:
				sx, sy = w-1-x, h-1-y
			case 270:
				sx, sy = y, h-1-x
			}
			copy(out.Pix[(y*w+x)*ch:][:ch], m.Pix[(sy*w+sx)*ch:][:ch])
		}
	}
	m.Pix, out.Pix = out.Pix, m.Pix
	return nil
}

// scaled is the nearest sample without turning: steps are added up.
func scaled(out, m *Image, a Affine) {
	column := make([]int, m.Width)
	at := a[2] + float64(a[0]*0.5)
	for x := range column {
		column[x] = coordinate(at, m.Width)
		at += a[0]
	}
	at = a[5] + float64(a[4]*0.5)
	ch := m.Channels
	for y := range m.Height {
		if row := coordinate(at, m.Height); row >= 0 {
			for x, c := range column {
				if c >= 0 {
					copy(out.Pix[(y*m.Width+x)*ch:][:ch], m.Pix[(row*m.Width+c)*ch:][:ch])
				}
			}
		}
		at += a[4]
	}
}

// coordinate is the sample at v of n, or −1.
func coordinate(v float64, n int) int {
	if v < 0 || v >= float64(n) {
		return -1
	}
	return int(v)
}

// small reports whether places fit 16 bits with 16 fractional bits.
func (a Affine) small(w, h int) bool {
	for _, c := range [][2]float64{{0, 0}, {float64(w), float64(h)}, {0, float64(h)}, {float64(w), 0}} {
		for i := 0; i < 6; i += 3 {
			if !(math.Abs(float64(c[0]*a[i])+float64(c[1]*a[i+1])+a[i+2]) < 32768) {
				return false
			}
		}
	}
	return true
}

// fixed is the nearest sample in 16-bit fixed point.
func fixed(out, m *Image, a Affine) {
	fix := func(v float64) int { return int(math.Floor(float64(v*65536) + 0.5)) }
	a0, a1, a3, a4 := fix(a[0]), fix(a[1]), fix(a[3]), fix(a[4])
	a2 := fix(a[2] + float64(a[0]*0.5) + float64(a[1]*0.5))
	a5 := fix(a[5] + float64(a[3]*0.5) + float64(a[4]*0.5))
	ch := m.Channels
	for y := range m.Height {
		xx, yy := a2, a5
		for x := range m.Width {
			if c, r := xx>>16, yy>>16; c >= 0 && c < m.Width && r >= 0 && r < m.Height {
				copy(out.Pix[(y*m.Width+x)*ch:][:ch], m.Pix[(r*m.Width+c)*ch:][:ch])
			}
			xx += a0
			yy += a3
		}
		a2 += a1
		a5 += a4
	}
}

// sampled is any interpolation in float64.
func sampled(out, m *Image, a Affine, how Interpolation) {
	w, h, ch := m.Width, m.Height, m.Channels
	for y := range h {
		for x := range w {
			px, py := float64(x)+0.5, float64(y)+0.5
			sx := float64(float64(a[0]*px)+float64(a[1]*py)) + a[2]
			sy := float64(float64(a[3]*px)+float64(a[4]*py)) + a[5]
			if !(sx >= 0 && sx < float64(w) && sy >= 0 && sy < float64(h)) {
				continue
			}
			to := out.Pix[(y*w+x)*ch:][:ch]
			switch how {
			case Bilinear:
				bilinearAt(to, m, sx-0.5, sy-0.5)
			case Bicubic:
				bicubicAt(to, m, sx-0.5, sy-0.5)
			default:
				copy(to, m.Pix[(int(sy)*w+int(sx))*ch:][:ch])
			}
		}
	}
}

func bilinearAt(to []uint8, m *Image, x, y float64) {
	fx, fy := math.Floor(x), math.Floor(y)
	dx, dy := x-fx, y-fy
	c, r := int(fx), int(fy)
	x0, x1 := within(c, m.Width), within(c+1, m.Width)
	ch := m.Channels
	near := m.row(within(r, m.Height))
	for k := range to {
		v := line(float64(near[x0*ch+k]), float64(near[x1*ch+k]), dx)
		u := v
		if r+1 >= 0 && r+1 < m.Height {
			far := m.row(r + 1)
			u = line(float64(far[x0*ch+k]), float64(far[x1*ch+k]), dx)
		}
		to[k] = uint8(line(v, u, dy))
	}
}

// line goes from a at 0 to b at 1.
func line(a, b, d float64) float64 { return a + float64((b-a)*d) }

func bicubicAt(to []uint8, m *Image, x, y float64) {
	fx, fy := math.Floor(x), math.Floor(y)
	dx, dy := x-fx, y-fy
	c, r := int(fx)-1, int(fy)-1
	ch := m.Channels
	var at [4]int
	for i := range at {
		at[i] = within(c+i, m.Width) * ch
	}
	for k := range to {
		var v [4]float64
		for i := range v {
			row := r + i
			switch {
			case i == 0:
				row = within(row, m.Height)
			case row < 0 || row >= m.Height:
				v[i] = v[i-1]
				continue
			}
			p := m.row(row)[k:]
			v[i] = curve(float64(p[at[0]]), float64(p[at[1]]), float64(p[at[2]]), float64(p[at[3]]), dx)
		}
		s := curve(v[0], v[1], v[2], v[3], dy)
		to[k] = uint8(min(max(s, 0), 255))
	}
}

// curve is the cubic through b and c with the slopes (c−a)/… that PIL's bicubic filter has.
func curve(a, b, c, d, t float64) float64 {
	p2, p3, p4 := -a+c, float64(2*(a-b))+c-d, -a+b-c+d
	return b + float64(t*(p2+float64(t*(p3+float64(t*p4)))))
}

// within is the nearest of 0 … n−1.
func within(i, n int) int { return min(max(i, 0), n-1) }
