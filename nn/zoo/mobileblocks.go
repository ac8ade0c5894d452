package zoo

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"onlinerna/nn"
)

// mobileSpec are blocks in a row that are alike, but for the first's stride, as timm's arch_def writes them.
type mobileSpec struct {
	kind string // ds, dsa, ir, er, cn, uir or mqa

	repeats, stride, out int // r, s, c

	// The extents of kernels, k, a and p. Each of several extents is that of an equal part of the channels.
	kernel, start, end []int

	expansion, se            float64 // e, se
	from                     int     // channels that an expansion counts from; 0: the input's; fc
	group                    int     // channels of a group; 0: the kind's own; gs
	heads, width, keysStride int     // h, d, v; d1 of a ds begins blocks of 2×2 pixels as channels
	space                    int     // 1 of the block that makes channels of 2×2 pixels, 2 of those behind it
	experts                  int     // of an ir, whose weights are mixtures of theirs; cc
	act                      nn.Activation
	skip, noskip             bool

	// Channels of a pruned ir: between its convolutions, in its excitation, and of the result; w, b and o, which timm does
	// not write. 0: all.
	wide, between, left int
}

var mobileActs = map[string]nn.Activation{
	"nre": (*nn.Builder).ReLU, "nr6": relu6, "nhs": (*nn.Builder).Hardswish, "nsw": (*nn.Builder).SiLU,
}

// parseMobile reads a block. The error says the rule that it breaks.
func parseMobile(text string) (s mobileSpec, err error) {
	words := strings.Split(text, "_")
	s.kind = words[0]
	at := 1
	switch s.kind {
	case "ds", "dsa", "ir", "er", "cn", "mqa":
	case "uir":
		at = 0
	default:
		return s, fmt.Errorf("of the kinds ds, dsa, ir, er, cn, uir and mqa")
	}
	s.start, s.end, s.repeats, s.stride = []int{at}, []int{at}, 1, 1
	ints := map[string]*int{"r": &s.repeats, "s": &s.stride, "c": &s.out, "fc": &s.from, "gs": &s.group, "h": &s.heads,
		"d": &s.width, "v": &s.keysStride, "w": &s.wide, "b": &s.between, "o": &s.left,
		"cc": &s.experts}
	floats := map[string]*float64{"e": &s.expansion, "se": &s.se}
	kernels := map[string]*[]int{"k": &s.kernel, "a": &s.start, "p": &s.end}
	for _, w := range words[1:] {
		if act := mobileActs[w]; act != nil {
			s.act = act
			continue
		}
		i := max(strings.IndexAny(w, "0123456789"), 0)
		key, value := w[:i], w[i:]
		known := true
		switch {
		case w == "skip":
			s.skip = true
		case w == "noskip":
			s.noskip = true
		case ints[key] != nil:
			*ints[key], err = strconv.Atoi(value)
		case floats[key] != nil:
			*floats[key], err = strconv.ParseFloat(value, 64)
		case kernels[key] != nil:
			var list []int
			for _, v := range strings.Split(value, ".") {
				n, wrong := strconv.Atoi(v)
				if wrong != nil || n > mostCount || n%2 == 0 && (n > 0 || s.kind != "uir") {
					err = strconv.ErrSyntax
				}
				list = append(list, n)
			}
			*kernels[key] = list
		default:
			known = false
		}
		if !known || err != nil {
			return s, fmt.Errorf("without %q", w)
		}
	}
	return s, s.check()
}

// check is the error of numbers that make no block.
func (s mobileSpec) check() error {
	least := min(s.repeats, s.stride, s.out)
	if s.kind == "mqa" {
		least = min(least, s.heads, s.width)
	}
	switch {
	case least < 1 || max(s.repeats, s.out, s.from, s.group, s.heads, s.width, s.keysStride, s.wide, s.between,
		s.left) > mostCount:
		return fmt.Errorf("with numbers r, s and c from 1 to %d, mqa also with h and d", mostCount)
	case s.stride > 2:
		return fmt.Errorf("of a stride of 1 or 2")
	case s.kernel == nil:
		return fmt.Errorf("with kernels k")
	case s.expansion > mostFactor || s.expansion <= 0 && (s.kind == "ir" || s.kind == "er" || s.kind == "uir"):
		return fmt.Errorf("with an expansion e above 0 and at most %d", mostFactor)
	case s.se > 1:
		return fmt.Errorf("with an se of at most 1")
	case s.kind == "uir" && s.stride > 1 && s.start[0]+s.kernel[0] == 0:
		return fmt.Errorf("of a stride of 1 without a larger kernel than 1×1")
	case s.kind == "mqa" && (s.stride > 1 || s.keysStride > 2):
		return fmt.Errorf("of a stride of 1, and of 2 at most for keys")
	case s.kind != "ir" && s.wide+s.between+s.left+s.experts > 0:
		return fmt.Errorf("without a w, b, o or cc unless ir")
	case s.experts > 64 || s.experts > 0 && (len(s.kernel) > 1 || s.start[0]+s.end[0] > 2 || s.wide+s.left+s.group > 0):
		return fmt.Errorf("with a cc of at most 64, and then with a single k, and without a, p, w, o and gs")
	case s.kind == "uir" && s.end[0] > 0:
		return fmt.Errorf("without a p")
	}
	return nil
}

// toChannels makes of the block one that has 2×2 pixels as channels, if it begins such blocks or space says that they
// are not over. space becomes the block's own.
func (s *mobileSpec) toChannels(space *int) {
	switch {
	case *space == 0 && s.kind == "ds" && s.width > 0:
		s.space, s.out = 1, 4*s.out
	case *space > 0 && s.stride > 1:
		s.stride, s.expansion = 1, s.expansion/4
	case *space > 0:
		s.space, s.out = 2, 4*s.out
	}
	*space = s.space
}

// deepen multiplies the numbers of a stage's blocks by depth: the sum is rounded, or rounded up, and distributed from
// the last blocks on.
func deepen(stage []mobileSpec, depth float64, round bool) {
	have := 0
	for _, s := range stage {
		have += s.repeats
	}
	want := int(math.Ceil(float64(have) * depth))
	if round {
		want = max(1, int(math.RoundToEven(float64(have)*depth)))
	}
	for i := len(stage) - 1; i >= 0; i-- {
		n := stage[i].repeats
		stage[i].repeats = max(1, int(math.RoundToEven(float64(n)/float64(have)*float64(want))))
		have, want = have-n, want-stage[i].repeats
	}
}
