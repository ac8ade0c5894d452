// Package level says which instructions the kernels may use.
//
// The best level that the processor has is chosen at start. The environment variable RNA_CPU, one of avx512,
// avx2, neon and go, lowers it. The build tag purego leaves nothing but plain Go, as do other processors than amd64
// and arm64.
package level

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
		return Go, fmt.Errorf("level %q: want one of %s", name, strings.Join(names, ", "))
	}
	return Level(i), nil
}

var (
	all     = detect()
	best    = all[len(all)-1]
	current atomic.Int32
	invalid error
)

func init() {
	var l Level
	l, invalid = choose(os.Getenv(Variable), all)
	current.Store(int32(l))
}

// choose is the level for a value of Variable where there are those of all.
func choose(value string, all []Level) (Level, error) {
	best := all[len(all)-1]
	if value == "" {
		return best, nil
	}
	l, err := Parse(value)
	if err != nil {
		return best, fmt.Errorf("%s: %w", Variable, err)
	}
	if !slices.Contains(all, l) {
		return best, fmt.Errorf("%s: level %v: this processor or build has %v", Variable, l, all)
	}
	return l, nil
}

// Err says what is wrong with the value of Variable. The level is the best then.
func Err() error { return invalid }

// Best is the highest level that processor and build have.
func Best() Level { return best }

// Current is the level that kernels use. They ask once, when they are bound.
func Current() Level { return Level(current.Load()) }

// All lists the levels from Go to Best.
func All() []Level { return slices.Clone(all) }

// Force makes l the current level and returns a function that restores the one before: the hook for tests. It
// panics if processor or build do not have l.
func Force(l Level) (restore func()) {
	if !slices.Contains(all, l) {
		panic(fmt.Sprintf("level: force %v: this processor or build has %v", l, all))
	}
	before := current.Swap(int32(l))
	return func() { current.Store(before) }
}
