package augment

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"onlinerna/data/imaging"
	"onlinerna/data/random"
)

// operation is one of the operations of automatic augmentation.
type operation uint8

const (
	opIdentity operation = iota
	opShearX
	opShearY
	opTranslateX
	opTranslateY
	opRotate
	opBrightness
	opColor
	opContrast
	opSharpness
	opPosterize
	opSolarize
	opAutoContrast
	opEqualize
	opInvert
	opSolarizeAdd
)

// operator holds the scratch, interpolation and fill that operations need.
type operator struct {
	imaging.Operator
	how  imaging.Interpolation
	fill []uint8 // colour outside a moved image; nil: black
}

// apply equals torchvision's _apply_op.
func (a *operator) apply(m *imaging.Image, op operation, magnitude float64) error {
	switch op {
	case opShearX:
		return a.Transform(m, imaging.ShearAngles(degrees(math.Atan(magnitude)), 0), a.how, a.fill)
	case opShearY:
		return a.Transform(m, imaging.ShearAngles(0, degrees(math.Atan(magnitude))), a.how, a.fill)
	case opTranslateX:
		return a.Transform(m, imaging.Shift(-math.Trunc(magnitude), 0), a.how, a.fill)
	case opTranslateY:
		return a.Transform(m, imaging.Shift(0, -math.Trunc(magnitude)), a.how, a.fill)
	case opRotate:
		return a.Rotate(m, magnitude, a.how, a.fill)
	case opBrightness:
		a.Brightness(m, 1+magnitude)
	case opColor:
		a.Color(m, 1+magnitude)
	case opContrast:
		a.Contrast(m, 1+magnitude)
	case opSharpness:
		a.Sharpness(m, 1+magnitude)
	case opPosterize:
		a.Posterize(m, int(magnitude))
	case opSolarize:
		a.Solarize(m, magnitude)
	case opSolarizeAdd:
		a.SolarizeAdd(m, int(magnitude))
	case opAutoContrast:
		a.AutoContrast(m)
	case opEqualize:
		a.Equalize(m)
	case opInvert:
		a.Invert(m)
	}
	return nil
}

func degrees(radians float64) float64 { return radians * (180 / math.Pi) }

// policy chooses operations for an image and applies them.
type policy interface {
	apply(m *imaging.Image, a *operator, r *random.Rand) error
}

// space is the range of an operation's magnitudes.
type space struct {
	op     operation
	lo, hi float64
	// The magnitude of signed operations is negative with probability 1/2. per is the unit of the range: 'w' and 'h'
	// are the image's width and height, 'p' is bits, 8 minus the rounded magnitude, and 0 is no magnitude.
	signed bool
	per    byte
}

// levels are the ranges of RandAugment and AutoAugment, and of TrivialAugmentWide, in torchvision's order.
var levels = []space{
	{op: opIdentity}, {opShearX, 0, .3, true, '1'}, {opShearY, 0, .3, true, '1'},
	{opTranslateX, 0, 150. / 331, true, 'w'},
	{opTranslateY, 0, 150. / 331, true, 'h'}, {opRotate, 0, 30, true, '1'}, {opBrightness, 0, .9, true, '1'},
	{opColor, 0, .9, true, '1'},
	{opContrast, 0, .9, true, '1'}, {opSharpness, 0, .9, true, '1'}, {opPosterize, 0, 4, false, 'p'},
	{opSolarize, 255, 0, false, '1'},
	{op: opAutoContrast}, {op: opEqualize}, {op: opInvert}, // the last is AutoAugment's alone
}

var wideLevels = []space{
	{op: opIdentity}, {opShearX, 0, .99, true, '1'}, {opShearY, 0, .99, true, '1'}, {opTranslateX, 0, 32, true, '1'},
	{opTranslateY, 0, 32, true, '1'}, {opRotate, 0, 135, true, '1'}, {opBrightness, 0, .99, true, '1'},
	{opColor, 0, .99, true, '1'},
	{opContrast, 0, .99, true, '1'}, {opSharpness, 0, .99, true, '1'}, {opPosterize, 0, 6, false, 'p'},
	{opSolarize, 255, 0, false, '1'},
	{op: opAutoContrast}, {op: opEqualize},
}

// at is magnitude i of n for an image of width×height: torch.linspace in float32, products not rounded.
func (s space) at(i, n, width, height int) float64 {
	hi := s.hi
	switch s.per {
	case 0:
		return 0
	case 'p':
		return 8 - math.RoundToEven(float64(float32(i)/float32(float64(n-1)/s.hi)))
	case 'w':
		hi *= float64(width)
	case 'h':
		hi *= float64(height)
	}
	a, b := float32(s.lo), float32(hi)
	step := (b - a) / float32(n-1)
	if i < n/2 {
		return float64(float32(float64(a) + float64(float64(step)*float64(i))))
	}
	return float64(float32(float64(b) - float64(float64(step)*float64(n-1-i))))
}

// do applies the operation of s with magnitude i of n, with either sign.
func (s space) do(m *imaging.Image, a *operator, i, n int, negative bool) error {
	v := s.at(i, n, m.Width, m.Height)
	if s.signed && negative {
		v = -v
	}
	return a.apply(m, s.op, v)
}

const bins = 31 // of magnitudes

// trivial is TrivialAugmentWide (Müller and Hutter 2021).
type trivial struct{}

func (trivial) apply(m *imaging.Image, a *operator, r *random.Rand) error {
	s, i, negative := wideLevels[r.IntN(len(wideLevels))], r.IntN(bins), r.IntN(2) == 1
	return s.do(m, a, i, bins, negative)
}

// randAugment is RandAugment (Cubuk et al. 2020), as torchvision's.
type randAugment struct{ ops, magnitude int }

func (p randAugment) apply(m *imaging.Image, a *operator, r *random.Rand) error {
	for range p.ops {
		s, negative := levels[r.IntN(len(levels)-1)], r.IntN(2) == 1
		if err := s.do(m, a, p.magnitude, bins, negative); err != nil {
			return err
		}
	}
	return nil
}

// automatic is AutoAugment.
type automatic [][2]chance

func (p automatic) apply(m *imaging.Image, a *operator, r *random.Rand) error {
	for _, c := range p[r.IntN(len(p))] {
		skip, negative := r.Float64() > c.p, r.IntN(2) == 0
		if skip {
			continue
		}
		for _, s := range levels {
			if s.op != c.op {
				continue
			}
			if err := s.do(m, a, max(c.magnitude, 0), 10, negative); err != nil {
				return err
			}
		}
	}
	return nil
}

// timmRandom is timm's RandAugment with operations that grow with the magnitude ("inc1").
type timmRandom struct {
	magnitude, deviation, p float64
	ops                     int
}

var timmOps = []operation{opAutoContrast, opEqualize, opInvert, opRotate, opPosterize, opSolarize, opSolarizeAdd,
	opColor, opContrast,
	opBrightness, opSharpness, opShearX, opShearY, opTranslateX, opTranslateY}

func (p timmRandom) apply(m *imaging.Image, a *operator, r *random.Rand) error {
	for range p.ops {
		op := timmOps[r.IntN(len(timmOps))]
		skip, spread, negative, cubic := r.Float64() > p.p, r.Normal(), r.IntN(2) == 1, r.IntN(2) == 1
		if skip {
			continue
		}
		how := a.how
		if how == imaging.Nearest { // nothing was chosen
			how = imaging.Bilinear
			if cubic {
				how = imaging.Bicubic
			}
		}
		level := min(max(p.magnitude+p.deviation*spread, 0), 10) / 10
		if err := timmApply(m, a, op, level, negative, how); err != nil {
			return err
		}
	}
	return nil
}

// timmApply does an operation at a level from 0 to 1.
func timmApply(m *imaging.Image, a *operator, op operation, level float64, negative bool,
	how imaging.Interpolation) error {
	sign := 1.
	if negative {
		sign = -1
	}
	switch op {
	case opShearX:
		return a.Transform(m, imaging.ShearX(sign*level*.3), how, a.fill)
	case opShearY:
		return a.Transform(m, imaging.ShearY(sign*level*.3), how, a.fill)
	case opTranslateX:
		return a.Transform(m, imaging.Shift(sign*level*.45*float64(m.Width), 0), how, a.fill)
	case opTranslateY:
		return a.Transform(m, imaging.Shift(0, sign*level*.45*float64(m.Height)), how, a.fill)
	case opRotate:
		return a.Rotate(m, sign*level*30, how, a.fill)
	case opPosterize:
		return a.apply(m, op, float64(4-int(level*4)))
	case opSolarize:
		return a.apply(m, op, float64(256-min(256, int(level*256))))
	case opSolarizeAdd:
		return a.apply(m, op, float64(min(128, int(level*110))))
	case opBrightness, opColor, opContrast, opSharpness:
		return a.apply(m, op, max(.1, 1+sign*level*.9)-1)
	}
	return a.apply(m, op, 0)
}

// Policies describes the names of automatic augmentation.
func Policies() string {
	return "ra, ta_wide, imagenet, cifar10 (torchvision's), or timm's rand-m7-mstd0.5-inc1"
}

// parsePolicy finds a policy by its name; "" is none.
func parsePolicy(name string) (policy, error) {
	switch name {
	case "":
		return nil, nil
	case "ra":
		return randAugment{2, 9}, nil
	case "ta_wide":
		return trivial{}, nil
	case "imagenet":
		return automatic(imageNetPolicy), nil
	case "cifar10":
		return automatic(cifarPolicy), nil
	}
	rest, ok := strings.CutPrefix(name, "rand-")
	if !ok {
		return nil, fmt.Errorf("unknown automatic augmentation %q: use one of %s", name, Policies())
	}
	p := timmRandom{magnitude: 10, p: .5, ops: 2}
	increasing := false
	for _, part := range strings.Split(rest, "-") {
		digits := strings.IndexAny(part, "0123456789.")
		if digits < 1 {
			return nil, fmt.Errorf("automatic augmentation %q: %q is no option with a number", name, part)
		}
		v, err := strconv.ParseFloat(part[digits:], 64)
		if err != nil {
			return nil, fmt.Errorf("automatic augmentation %q: %q is no option with a number", name, part)
		}
		switch part[:digits] {
		case "m":
			p.magnitude = v
		case "mstd":
			p.deviation = v
		case "n":
			p.ops = int(v)
		case "p":
			p.p = v
		case "inc":
			increasing = v == 1
		default:
			return nil, fmt.Errorf("automatic augmentation %q: unknown option %q: use m, n, p, mstd and inc1",
				name, part)
		}
	}
	if !increasing || p.magnitude < 0 || p.magnitude > 10 || p.ops < 1 || p.p < 0 || p.p > 1 || p.deviation < 0 {
		return nil, fmt.Errorf("automatic augmentation %q: want inc1 (operations that grow with the magnitude), m "+
			"from 0 to 10, n from 1, p from 0 to 1", name)
	}
	return p, nil
}
