package format

import (
	"math"

	"onlinerna/data/random"
)

// The distortions of a glyph, in pixels unless noted.
const (
	glyphRotation    = 0.5  // at most, radians
	glyphJitter      = 0.06 // of a vertex, as a share of the shape's radius; half for smooth shapes
	glyphDistractors = 2    // at most
	glyphNoise       = 0.2  // at most, as a share of white
)

type point struct{ x, y float64 }

var glyphClasses = []string{
	"circle", "triangle", "square", "pentagon", "hexagon", "star", "arc", "spiral", "arrow", "cross",
}

// glyphStrokes holds the polylines of each class, inside the unit circle.
var glyphStrokes = [][][]point{
	{polygon(20)}, {polygon(3)}, {polygon(4)}, {polygon(5)}, {polygon(6)},
	{curve(11, 0, 2*math.Pi, func(i int) float64 { return 1 - 0.55*float64(i%2) })},
	{curve(15, 0.25*math.Pi, 1.75*math.Pi, func(int) float64 { return 1 })},
	{curve(26, 0, 3.4*math.Pi, func(i int) float64 { return 0.12 + product(0.88, float64(i)/25) })},
	{{{-1, 0}, {1, 0}}, {{.35, .6}, {1, 0}, {.35, -.6}}},
	{{{-1, 0}, {1, 0}}, {{0, -1}, {0, 1}}},
}

func polygon(n int) []point {
	return curve(n+1, 0, 2*math.Pi, func(int) float64 { return 1 })
}

// curve returns n points at angles from first to last. One that ends where it began is closed exactly.
func curve(n int, first, last float64, radius func(i int) float64) []point {
	pts := make([]point, n)
	for i := range pts {
		sin, cos := sincos(first + product(last-first, float64(i)/float64(n-1)))
		pts[i] = point{product(radius(i), cos), product(radius(i), sin)}
	}
	if last-first == 2*math.Pi {
		pts[n-1] = pts[0]
	}
	return pts
}

// product is a·b, rounded. Go may fuse a product and a sum on some platforms, which changes the
// last bit; nothing here may depend on that.
func product(a, b float64) float64 { return float64(a * b) }

// sincos works for angles of a few turns, to about 1e-13. The functions of package math may differ
// in the last bit from one platform to another.
func sincos(x float64) (sin, cos float64) {
	const halvings = 6
	x /= 1 << halvings
	x2 := product(x, x)
	for k := 11.; k > 1; k -= 2 { // Taylor
		sin = product(-x2/(k*(k-1)), 1+sin)
	}
	sin = product(x, 1+sin)
	for k := 10.; k > 1; k -= 2 {
		cos = product(-x2/(k*(k-1)), 1+cos)
	}
	for range halvings { // cos is held as cos − 1, which keeps the digits of small angles
		sin, cos = product(2*sin, 1+cos), -2*product(sin, sin)
	}
	return sin, 1 + cos
}

// drawGlyph writes one image of class label, 28×28, to pix.
func drawGlyph(pix []uint8, label int, r *random.Rand) {
	var ink [glyphSize * glyphSize]float64
	const size = float64(glyphSize)
	sin, cos := sincos(r.Uniform(-glyphRotation, glyphRotation))
	scale := product(size, r.Uniform(0.22, 0.40))
	stretch := math.Sqrt(r.Uniform(0.75, 1.3))
	shear := r.Uniform(-0.3, 0.3)
	// rotation · [stretch, shear; 0, 1/stretch] · scale
	xx, xy := product(scale, product(cos, stretch)), product(scale, product(cos, shear)-sin/stretch)
	yx, yy := product(scale, product(sin, stretch)), product(scale, product(sin, shear)+cos/stretch)
	centre := point{size/2 + product(size, r.Uniform(-0.12, 0.12)), size/2 + product(size, r.Uniform(-0.12, 0.12))}
	width, amplitude := r.Uniform(0.5, 1.1), r.Uniform(0.5, 1)
	var moved [26]point
	for _, stroke := range glyphStrokes[label] {
		jitter := glyphJitter
		if len(stroke) > 12 {
			jitter /= 2
		}
		pts := moved[:len(stroke)]
		for i, p := range stroke {
			x := p.x + product(jitter, r.Normal())
			y := p.y + product(jitter, r.Normal())
			pts[i] = point{product(xx, x) + product(xy, y) + centre.x, product(yx, x) + product(yy, y) + centre.y}
		}
		if last := len(stroke) - 1; stroke[0] == stroke[last] {
			pts[last] = pts[0]
		}
		for i := range pts[1:] {
			drawSegment(&ink, pts[i], pts[i+1], width, amplitude)
		}
	}
	for range r.IntN(glyphDistractors + 1) {
		a := point{r.Uniform(0, size), r.Uniform(0, size)}
		b := point{a.x + product(size/4, r.Normal()), a.y + product(size/4, r.Normal())}
		drawSegment(&ink, a, b, r.Uniform(0.4, 0.9), r.Uniform(0.3, 0.9))
	}
	slopeX, slopeY := r.Uniform(-0.15, 0.15)/size, r.Uniform(-0.15, 0.15)/size
	noise := product(glyphNoise, r.Uniform(0.5, 1))
	for i := range pix {
		x, y := float64(i%glyphSize)-size/2, float64(i/glyphSize)-size/2
		v := 0.15 + product(0.7, ink[i]) + product(slopeX, x) + product(slopeY, y) + product(noise, r.Normal())
		pix[i] = uint8(min(max(product(v, 255), 0), 255))
	}
}

// drawSegment draws the points within width of the segment from a to b, with an edge of one pixel.
func drawSegment(ink *[glyphSize * glyphSize]float64, a, b point, width, amplitude float64) {
	reach := width + 0.5
	dx, dy := b.x-a.x, b.y-a.y
	length2 := product(dx, dx) + product(dy, dy) + 1e-9
	x0, x1 := span28(a.x, b.x, reach)
	y0, y1 := span28(a.y, b.y, reach)
	for y := y0; y < y1; y++ {
		for x := x0; x < x1; x++ {
			px, py := float64(x)-a.x, float64(y)-a.y
			t := min(max((product(px, dx)+product(py, dy))/length2, 0), 1)
			ex, ey := product(t, dx)-px, product(t, dy)-py
			distance := math.Sqrt(product(ex, ex) + product(ey, ey))
			v := product(amplitude, min(max(reach-distance, 0), 1))
			ink[y*glyphSize+x] = max(ink[y*glyphSize+x], v)
		}
	}
}

// span28 is the range of pixels within reach of the interval between a and b.
func span28(a, b, reach float64) (lo, hi int) {
	lo = int(max(math.Floor(min(a, b)-reach), 0))
	hi = int(min(math.Ceil(max(a, b)+reach)+1, glyphSize))
	return lo, hi
}
