package extrapolate

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"onlinerna/train/statedict"
)

// Order is a way to order files.
type Order string

const (
	// Given keeps the order of the arguments.
	Given Order = "given"
	// Natural orders by name, with numbers compared by value: 2 before 10.
	Natural Order = "natural"
	// ByStep orders by the number that [Step] finds.
	ByStep Order = "step"
)

// Sort orders checkpoints, oldest first.
func Sort(files []*Checkpoint, by Order) error {
	switch by {
	case Given:
	case Natural:
		slices.SortStableFunc(files, func(a, b *Checkpoint) int { return CompareNatural(a.Path, b.Path) })
	case ByStep:
		steps := map[*Checkpoint]int64{}
		at := map[int64]*Checkpoint{}
		for _, f := range files {
			n, ok := f.Step()
			if !ok {
				return fmt.Errorf("%s: neither its metadata nor its name tells the step", f.Path)
			}
			if other := at[n]; other != nil {
				return fmt.Errorf("%s and %s are both of step %d", other.Path, f.Path, n)
			}
			steps[f], at[n] = n, f
		}
		slices.SortStableFunc(files, func(a, b *Checkpoint) int { return cmp.Compare(steps[a], steps[b]) })
	default:
		return fmt.Errorf("unknown order %q: given, natural or step", by)
	}
	return nil
}

// stepKeys are metadata keys for the step, in order of preference.
var stepKeys = []string{"step", "global_step", "epoch"}

// Step returns the step or epoch from the metadata, or else the last number in the file's name.
func (c *Checkpoint) Step() (int64, bool) {
	for _, k := range stepKeys {
		if n, err := strconv.ParseInt(c.Metadata[k], 10, 64); err == nil {
			return n, true
		}
	}
	if c.Contents == statedict.Shard { // its numbers are those of the shard
		return 0, false
	}
	base := filepath.Base(c.Path)
	base = strings.TrimSuffix(base, filepath.Ext(base))
	end := strings.LastIndexAny(base, "0123456789") + 1
	start := end
	for start > 0 && isDigit(base[start-1]) {
		start--
	}
	n, err := strconv.ParseInt(base[start:end], 10, 64)
	return n, err == nil
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// CompareNatural compares names, with runs of digits by value.
func CompareNatural(a, b string) int {
	x, y := a, b
	for x != "" && y != "" {
		if isDigit(x[0]) && isDigit(y[0]) {
			m, n := digits(x), digits(y)
			p, q := strings.TrimLeft(x[:m], "0"), strings.TrimLeft(y[:n], "0")
			if d := cmp.Or(cmp.Compare(len(p), len(q)), strings.Compare(p, q)); d != 0 {
				return d
			}
			x, y = x[m:], y[n:]
			continue
		}
		if x[0] != y[0] {
			return cmp.Compare(x[0], y[0])
		}
		x, y = x[1:], y[1:]
	}
	return cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(a, b))
}

// digits returns the length of the run of digits at the start of s.
func digits(s string) int {
	n := 0
	for n < len(s) && isDigit(s[n]) {
		n++
	}
	return n
}
