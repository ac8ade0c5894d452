// Package simd says which instructions the kernels may use.
//
// A level is an option of a device. The default is the best that the processor has; the environment variable RNA_CPU,
// one of avx512bf16, avx512, avx2, neon and go, lowers it: avx512 leaves out AVX512_BF16, too, and avx512bf16 takes it
// where it is slow. The build tag purego leaves nothing but plain Go, as do other processors than amd64 and arm64.
//
// Kernels lie beside the packages that call them; below gen, a module of its own, are the generators of all of them.
package simd

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// Level is a set of instructions. A higher one of the same processor includes the lower ones.
type Level int32

// The levels.
const (
	Go         Level = iota // plain Go
	NEON                    // arm64's vectors of 128 bits, which all of them have
	AVX2                    // AVX2, FMA and BMI2, with which F16C comes
	AVX512                  // AVX-512 F, BW, DQ and VL
	AVX512BF16              // AVX512 with products of bfloat16, VDPBF16PS; nothing else differs

	// Count is the length of a table by [Level.Vectors].
	Count = int(AVX512) + 1
)

// Variable is the name of the environment variable that chooses the default.
const Variable = "RNA_CPU"

var names = []string{Go: "go", NEON: "neon", AVX2: "avx2", AVX512: "avx512", AVX512BF16: "avx512bf16"}

// String is the name of l as Variable has it.
func (l Level) String() string {
	if l < 0 || int(l) >= len(names) {
		return fmt.Sprintf("Level(%d)", int32(l))
	}
	return names[l]
}

// Vectors is l without products of bfloat16.
func (l Level) Vectors() Level { return min(l, AVX512) }

// BFloat16 says whether products of bfloat16 use AVX512_BF16.
func (l Level) BFloat16() bool { return l == AVX512BF16 }

// processor is the levels of a processor and build.
type processor struct {
	vectors  []Level // from Go to the best
	bfloat16 bool    // it has AVX512_BF16
	fast     bool    // which is fast
}

var (
	own              = processor{detect(), hasBFloat16, fastBFloat16}
	standard, faulty = own.choose(os.Getenv(Variable))
)

// choose is the level of a name, the best that is fast for the empty one. With an error it is that, too.
func (p processor) choose(name string) (Level, error) {
	best := p.vectors[len(p.vectors)-1]
	if p.fast {
		best = AVX512BF16
	}
	if name == "" {
		return best, nil
	}
	i := slices.Index(names, strings.ToLower(name))
	switch l := Level(i); {
	case i < 0:
		return best, fmt.Errorf("level %q: want one of %s", name, strings.Join(names, ", "))
	case l == AVX512BF16 && !p.bfloat16:
		return best, fmt.Errorf("this processor or build has no AVX512_BF16")
	case l != AVX512BF16 && !slices.Contains(p.vectors, l):
		return best, fmt.Errorf("level %v: this processor or build has %v", l, p.vectors)
	default:
		return l, nil
	}
}

// Default is the level of Variable, or the best that is fast. It does not change while a program runs.
func Default() Level { return standard }

// Err says what is wrong with the value of Variable. The default is the best level then.
func Err() error {
	if faulty != nil {
		return fmt.Errorf("%s: %w", Variable, faulty)
	}
	return nil
}

// Choose is the level of a name that processor and build have, the default for the empty one.
func Choose(name string) (Level, error) {
	if name == "" {
		return standard, Err()
	}
	return own.choose(name)
}

// Best is the highest level of vectors that processor and build have.
func Best() Level { return own.vectors[len(own.vectors)-1] }

// All lists the levels of vectors from Go to Best.
func All() []Level { return slices.Clone(own.vectors) }

// HasBFloat16 says whether processor and build have AVX512BF16.
func HasBFloat16() bool { return own.bfloat16 }
