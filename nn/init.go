package nn

import (
	"errors"
	"fmt"
	"math"

	"onlinerna/internal/parallel"
)

// Init is the initial distribution of a parameter.
type Init struct {
	Distribution Distribution
	Scale        float64 // standard deviation, bound or value
	Mean         float64 // of Normal and Uniform
	Row          int     // of Frequencies: values that share an angle

	Second *Init // of the second half of the values; nil means the same

	Given Given // the values themselves; nil means those of the distribution
}

// Given are the initial values of a parameter, by number in row-major order.
type Given interface{ At(i int) float64 }

// Distribution is the distribution of the initial values of a parameter.
type Distribution uint8

// The distributions.
const (
	Constant Distribution = iota // all Scale
	Normal                       // mean Mean, standard deviation Scale
	Uniform                      // in [Mean−Scale, Mean+Scale)

	// Frequencies are vectors of the plane: their first elements are the first half of the values, their second elements
	// the other. Those of a row of values decrease as Scale to the power of −2k/Row, for k from 0 to Row/2−1, in a random
	// direction, and those of the row's second half are perpendicular (Heo et al. 2024).
	Frequencies
)

func (i Init) String() string {
	if i.Second != nil {
		first := i
		first.Second = nil
		return fmt.Sprintf("%v, in the second half %v", first, *i.Second)
	}
	if i.Given != nil {
		return fmt.Sprintf("%T%+[1]v", i.Given)
	}
	switch i.Distribution {
	case Constant:
		return fmt.Sprintf("constant %g", i.Scale)
	case Normal:
		if i.Mean != 0 {
			return fmt.Sprintf("normal, mean %.6g, standard deviation %.6g", i.Mean, i.Scale)
		}
		return fmt.Sprintf("normal, standard deviation %.6g", i.Scale)
	case Uniform:
		if i.Mean != 0 {
			return fmt.Sprintf("uniform from %.6g to %.6g", i.Mean-i.Scale, i.Mean+i.Scale)
		}
		return fmt.Sprintf("uniform in ±%.6g", i.Scale)
	case Frequencies:
		return fmt.Sprintf("frequencies by powers of %.6g, in random directions", i.Scale)
	}
	return fmt.Sprintf("distribution %d, scale %g", i.Distribution, i.Scale)
}

// HeNormal is He's initialisation for a convolution with this number of filters, whose kernels have the given number
// of pixels, followed by a ReLU, such that gradients keep their variance: normal with variance 2/fan-out, where the
// fan-out is filters·pixels.
func HeNormal(filters, pixels int) Init {
	return Init{Distribution: Normal, Scale: math.Sqrt(2 / float64(filters*pixels))}
}

// FanInUniform is PyTorch's default for linear layers, weight and bias: uniform in ±1/√fanIn.
func FanInUniform(fanIn int) Init {
	return Init{Distribution: Uniform, Scale: 1 / math.Sqrt(float64(fanIn))}
}

// fill writes the values of the stream (seed, name) into dst, a []float32 or []float64.
func (i Init) fill(dst any, seed uint64, name string) error {
	if i.Distribution > Frequencies {
		return fmt.Errorf("unknown distribution %d", i.Distribution)
	}
	if i.Distribution == Frequencies && (i.Row < 2 || i.Row%2 > 0) {
		return fmt.Errorf("frequencies by rows of %d values: their number must be even and above 0", i.Row)
	}
	if second := i.Second; second != nil {
		i.Second = nil
		var halves [2]any
		switch d := dst.(type) {
		case []float32:
			halves = [2]any{d[:len(d)/2], d[len(d)/2:]}
		case []float64:
			halves = [2]any{d[:len(d)/2], d[len(d)/2:]}
		default:
			return i.fill(dst, seed, name)
		}
		return errors.Join(i.fill(halves[0], seed, name), second.fill(halves[1], seed, name+".second"))
	}
	switch d := dst.(type) {
	case []float32:
		fillInit(i, d, stream(seed, name))
	case []float64:
		fillInit(i, d, stream(seed, name))
	default:
		return fmt.Errorf("initial values are float32 or float64, not %T", dst)
	}
	return nil
}

// fillPiece is the number of values that are drawn at a time. It is even, since normal values are drawn in pairs.
const fillPiece = 1 << 16

func fillInit[T float32 | float64](i Init, d []T, s uint64) {
	if i.Distribution == Frequencies {
		fillFrequencies(i, d, s)
		return
	}
	parallel.For((len(d)+fillPiece-1)/fillPiece, parallel.Cores(), func(_, k int) {
		lo := k * fillPiece
		drawInit(i, d[lo:min(lo+fillPiece, len(d))], s, uint64(lo))
	})
}

// fillFrequencies writes Frequencies.
func fillFrequencies[T float32 | float64](i Init, d []T, s uint64) {
	n, half := len(d)/2, i.Row/2
	for k := range n {
		angle := 2 * math.Pi * uniform(s, uint64(k/i.Row))
		length := math.Pow(i.Scale, -float64(k%half)/float64(half))
		if k%i.Row >= half {
			angle += math.Pi / 2
		}
		d[k], d[n+k] = T(length*math.Cos(angle)), T(length*math.Sin(angle))
	}
}

// drawInit writes the values from the given number on.
func drawInit[T float32 | float64](i Init, d []T, s, first uint64) {
	if i.Given != nil {
		for j := range d {
			d[j] = T(i.Given.At(int(first) + j))
		}
		return
	}
	switch i.Distribution {
	case Normal:
		for j := 0; j < len(d); j += 2 {
			a, b := normalPair(s, first+uint64(j))
			d[j] = T(i.Mean + i.Scale*a)
			if j+1 < len(d) {
				d[j+1] = T(i.Mean + i.Scale*b)
			}
		}
	case Uniform:
		for j := range d {
			d[j] = T(i.Mean + i.Scale*(2*uniform(s, first+uint64(j))-1))
		}
	default:
		for j := range d {
			d[j] = T(i.Scale)
		}
	}
}
