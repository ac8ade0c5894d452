package sweep

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"onlinerna/train"
	"onlinerna/train/option"
)

// A Dimension is an option and its values: a list, or a range to draw from.
type Dimension struct {
	Name   string
	Values []string // nil for a range
	Kind   string   // of a range: one of Ranges
	Lo, Hi float64
}

// Ranges are the kinds of ranges: uniform in the logarithm, uniform, and uniform whole numbers.
var Ranges = []string{"log", "lin", "int"}

// ParseDimension parses NAME=VALUE,VALUE,…, or NAME=log:LO..HI, lin:LO..HI or int:LO..HI. Semicolons separate the
// values of an option that is itself a list.
func ParseDimension(text string) (d Dimension, err error) {
	name, values, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return d, fmt.Errorf("%q: want NAME=VALUES, as lr=0.01,0.1 or lr=log:1e-3..1", text)
	}
	o, err := train.Options().Lookup(name)
	if err != nil {
		return d, err
	}
	d.Name = o.Name
	switch d.Name {
	case "out":
		return d, errors.New("out: the sweep names the folders of its runs")
	case "seed":
		return d, errors.New("seed: give the number of seeds by --seeds, and the first by --seed")
	}
	if kind, span, ok := strings.Cut(values, ":"); ok && slices.Contains(Ranges, kind) {
		return d, d.parseRange(kind, span)
	}
	separator := ","
	if o.Type() == "list" || strings.Contains(values, ";") {
		separator = ";"
	}
	seen := map[string]bool{}
	for _, v := range strings.Split(values, separator) {
		if v = strings.TrimSpace(v); v == "" {
			return d, fmt.Errorf("%s has an empty value in %q", d.Name, values)
		}
		var c train.Spec
		if err := o.Set(&c, v); err != nil {
			return d, err
		}
		if seen[o.Text(&c)] {
			return d, fmt.Errorf("%s has the value %s twice", d.Name, v)
		}
		seen[o.Text(&c)] = true
		d.Values = append(d.Values, v)
	}
	return d, nil
}

func (d *Dimension) parseRange(kind, span string) error {
	lo, hi, ok := strings.Cut(span, "..")
	var errs [2]error
	d.Kind = kind
	d.Lo, errs[0] = strconv.ParseFloat(lo, 64)
	d.Hi, errs[1] = strconv.ParseFloat(hi, 64)
	switch {
	case !ok || errors.Join(errs[:]...) != nil || math.IsInf(d.Lo, 0) || math.IsInf(d.Hi, 0):
		return fmt.Errorf("%s=%s:%s: want two numbers, as %s:1..10", d.Name, kind, span, kind)
	case !(d.Lo < d.Hi):
		return fmt.Errorf("%s=%s:%s is empty: the first number must be below the second", d.Name, kind, span)
	case kind == "log" && d.Lo <= 0:
		return fmt.Errorf("%s=%s:%s: a logarithmic range begins above 0", d.Name, kind, span)
	case kind == "int" && (d.Lo != math.Trunc(d.Lo) || d.Hi != math.Trunc(d.Hi)):
		return fmt.Errorf("%s=%s:%s: want whole numbers", d.Name, kind, span)
	}
	for _, x := range []float64{d.Lo, d.Hi} {
		if err := train.Options().Find(d.Name).Set(new(train.Spec), d.text(x)); err != nil {
			return err
		}
	}
	return nil
}

// text writes a value of a range; four digits are enough.
func (d *Dimension) text(x float64) string {
	if d.Kind == "int" {
		return strconv.Itoa(int(x))
	}
	return strconv.FormatFloat(x, 'g', 4, 64)
}

// draw draws a value.
func (d *Dimension) draw(r *rand.Rand) string {
	switch d.Kind {
	case "log":
		return d.text(d.Lo * math.Pow(d.Hi/d.Lo, r.Float64()))
	case "lin":
		return d.text(d.Lo + (d.Hi-d.Lo)*r.Float64())
	case "int":
		return d.text(d.Lo + float64(r.IntN(int(d.Hi-d.Lo)+1)))
	}
	return d.Values[r.IntN(len(d.Values))]
}

// maxCandidates bounds a grid, against typing errors.
const maxCandidates = 100_000

// grid lists all combinations of values; the last dimension changes first.
func grid(space []Dimension) ([][]option.Setting, error) {
	list := [][]option.Setting{nil}
	for _, d := range space {
		if len(list)*len(d.Values) > maxCandidates {
			return nil, fmt.Errorf("the grid has more than %d points: draw some by --trials", maxCandidates)
		}
		var next [][]option.Setting
		for _, c := range list {
			for _, v := range d.Values {
				next = append(next, append(slices.Clone(c), option.Setting{Name: d.Name, Text: v}))
			}
		}
		list = next
	}
	return list, nil
}

// random draws different points of a space, fewer if it has not as many.
func random(space []Dimension, n int, seed uint64) (list [][]option.Setting) {
	r := rand.New(rand.NewPCG(seed, 0x5eed))
	seen := map[string]bool{}
	for misses := 0; len(list) < n && misses < 10_000; {
		var c []option.Setting
		key := ""
		for i := range space {
			v := space[i].draw(r)
			c, key = append(c, option.Setting{Name: space[i].Name, Text: v}), key+v+"\x00"
		}
		if seen[key] {
			misses++
			continue
		}
		seen[key], misses = true, 0
		list = append(list, c)
	}
	return list
}
