// Package simd selects the instructions that the kernels may use.
//
// A level is an option of a device. The default is the best level of the processor. The environment variable RNA_CPU,
// one of amx, avx512bf16, avx512, avx2, neon and go, lowers it: avx512 leaves out AMX and AVX512_BF16 too, and
// avx512bf16 uses the latter even if it is slow. The build tag purego leaves only plain Go, and so do processors other
// than amd64 and arm64. AMX needs Linux, and its permission: see [LacksAMX].
//
// Kernels are next to the packages that call them. The module gen, below this package, has all their generators.
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
	NEON                    // arm64's vectors of 128 bits, which every arm64 processor has
	AVX2                    // AVX2, FMA and BMI2; these processors have F16C too
	AVX512                  // AVX-512 F, BW, DQ and VL
	AVX512BF16              // AVX512 with products of bfloat16, VDPBF16PS; nothing else differs
	AMX                     // AVX512 with products of bfloat16 in tiles, TDPBF16PS; nothing else differs

	// Count is the length of a table by [Level.Vectors].
	Count = int(AVX512) + 1
)

// Variable is the name of the environment variable that chooses the default.
const Variable = "RNA_CPU"

var names = []string{Go: "go", NEON: "neon", AVX2: "avx2", AVX512: "avx512", AVX512BF16: "avx512bf16", AMX: "amx"}

// String is the name of l as a value of Variable.
func (l Level) String() string {
	if l < 0 || int(l) >= len(names) {
		return fmt.Sprintf("Level(%d)", int32(l))
	}
	return names[l]
}

// Vectors is l without products of bfloat16.
func (l Level) Vectors() Level { return min(l, AVX512) }

// BFloat16 reports whether the processor multiplies bfloat16, by AVX512_BF16 or AMX.
func (l Level) BFloat16() bool { return l >= AVX512BF16 }

// processor describes the levels of a processor and build.
type processor struct {
	vectors  []Level // from Go to the best
	bfloat16 bool    // it has AVX512_BF16
	fast     bool    // AVX512_BF16 is fast
	lacks    error   // why it cannot use AMX, or nil
}

var (
	own              = processor{detect(), hasBFloat16, fastBFloat16, detectAMX()}
	standard, faulty = own.choose(os.Getenv(Variable))
)

// choose returns the level of a name; the empty name, and errors, give the best fast level.
func (p processor) choose(name string) (Level, error) {
	best := p.vectors[len(p.vectors)-1]
	switch {
	case p.lacks == nil:
		best = AMX
	case p.fast:
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
	case l == AMX && p.lacks != nil:
		return best, fmt.Errorf("level amx: %w", p.lacks)
	case l <= AVX512 && !slices.Contains(p.vectors, l):
		return best, fmt.Errorf("level %v: this processor or build has %v", l, p.vectors)
	default:
		return l, nil
	}
}

// Default is the level that Variable names, or the best fast one. It does not change while a program runs.
func Default() Level { return standard }

// Err reports an invalid value of Variable. The default is the best level then.
func Err() error {
	if faulty != nil {
		return fmt.Errorf("%s: %w", Variable, faulty)
	}
	return nil
}

// Choose returns the level of a name if processor and build have it, and the default for the empty name.
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

// HasBFloat16 reports whether processor and build have AVX512BF16.
func HasBFloat16() bool { return own.bfloat16 }

// FastBFloat16 reports whether processor and build have AVX512BF16, and it is no slower than products of float32.
func FastBFloat16() bool { return own.fast }
