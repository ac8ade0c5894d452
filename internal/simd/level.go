// Package simd says which instructions the kernels may use.
//
// The best level that the processor has is chosen at start. The environment variable RNA_CPU, one of avx512bf16, avx512, avx2,
// neon and go, lowers it: avx512 leaves out AVX512_BF16, too, and avx512bf16 takes it where it is slow. The build tag
// purego leaves nothing but plain Go, as do other processors than amd64 and arm64.
//
// Kernels lie beside the packages that call them; below gen, a module of its own, are the generators of all of them.
package simd

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
)

// Level is a set of instructions. A higher one of the same processor includes the lower ones.
type Level int32

// The levels.
const (
	Go     Level = iota // plain Go
	NEON                // arm64's vectors of 128 bits, which all of them have
	AVX2                // AVX2, FMA and BMI2, with which F16C comes
	AVX512              // AVX-512 F, BW, DQ and VL

	// Count is one more than the last level: the length of a table by level.
	Count = iota
)

// dots is the name of AVX512 with products of bfloat16, VDPBF16PS: no level of its own, since nothing else differs.
const dots = "avx512bf16"

// Variable is the name of the environment variable that lowers the level.
const Variable = "RNA_CPU"

var names = []string{Go: "go", NEON: "neon", AVX2: "avx2", AVX512: "avx512"}

// String is the name of l as Variable has it.
func (l Level) String() string {
	if l < 0 || int(l) >= len(names) {
		return fmt.Sprintf("Level(%d)", int32(l))
	}
	return names[l]
}

// Parse is the level of the given name.
func Parse(name string) (Level, error) {
	i := slices.Index(names, strings.ToLower(name))
	if i < 0 {
		return Go, fmt.Errorf("level %q: want one of %s, or %s", name, strings.Join(names, ", "), dots)
	}
	return Level(i), nil
}

var (
	all     = detect()
	best    = all[len(all)-1]
	current atomic.Int32
	narrow  atomic.Bool
	invalid error
)

func init() {
	var l Level
	var on bool
	l, on, invalid = choose(os.Getenv(Variable), all, hasBFloat16, fastBFloat16)
	current.Store(int32(l))
	narrow.Store(on)
}

// choose is the level for a value of Variable, and whether to use AVX512_BF16, where there are those of all and, as
// bfloat16 says, that, which may be fast.
func choose(value string, all []Level, bfloat16, fast bool) (Level, bool, error) {
	best := all[len(all)-1]
	switch {
	case value == "":
		return best, fast, nil
	case strings.ToLower(value) == dots:
		if !bfloat16 {
			return best, false, fmt.Errorf("%s: this processor or build has no AVX512_BF16", Variable)
		}
		return AVX512, true, nil
	}
	l, err := Parse(value)
	if err != nil {
		return best, fast, fmt.Errorf("%s: %w", Variable, err)
	}
	if !slices.Contains(all, l) {
		return best, fast, fmt.Errorf("%s: level %v: this processor or build has %v", Variable, l, all)
	}
	return l, false, nil
}

// Err says what is wrong with the value of Variable. The level is the best then.
func Err() error { return invalid }

// Best is the highest level that processor and build have.
func Best() Level { return best }

// Current is the level that kernels use. They ask once, when they are bound.
func Current() Level { return Level(current.Load()) }

// BFloat16 says whether products of bfloat16 use AVX512_BF16: at level AVX512, where the processor has it and it is fast or
// Variable asks for it. Kernels ask once, when they are bound.
func BFloat16() bool { return narrow.Load() && Current() == AVX512 }

// HasBFloat16 says whether the processor and build have AVX512_BF16.
func HasBFloat16() bool { return hasBFloat16 }

// ForceBFloat16 switches AVX512_BF16 on or off and returns a function that restores what was: the hook for tests, as Force. It
// panics if processor or build do not have it.
func ForceBFloat16(on bool) (restore func()) {
	if on && !hasBFloat16 {
		panic("simd: this processor or build has no AVX512_BF16")
	}
	before := narrow.Swap(on)
	return func() { narrow.Store(before) }
}

// All lists the levels from Go to Best.
func All() []Level { return slices.Clone(all) }

// Force makes l the current level and returns a function that restores the one before: the hook for tests. It
// panics if processor or build do not have l.
func Force(l Level) (restore func()) {
	if !slices.Contains(all, l) {
		panic(fmt.Sprintf("simd: force %v: this processor or build has %v", l, all))
	}
	before := current.Swap(int32(l))
	return func() { current.Store(before) }
}
