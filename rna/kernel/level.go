package kernel

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
)

// Level is a set of instructions. A higher one includes the lower ones.
type Level int

// The levels.
const (
	Go     Level = iota // plain Go
	AVX2                // AVX2 and FMA, with which F16C comes
	AVX512              // AVX-512 F, BW, DQ and VL
)

var levelNames = []string{Go: "go", AVX2: "avx2", AVX512: "avx512"}

func (l Level) String() string { return levelNames[l] }

// variable lowers the level.
const variable = "RNA_CPU"

var (
	best    = detect()
	current atomic.Pointer[set]
	invalid error
)

func init() {
	l, err := choose(os.Getenv(variable), best)
	current.Store(&sets[l])
	invalid = err
}

// choose is the level for a value of variable where best is the highest.
func choose(value string, best Level) (Level, error) {
	if value == "" {
		return best, nil
	}
	l := Level(slices.Index(levelNames, strings.ToLower(value)))
	if l < Go {
		return best, fmt.Errorf("%s: level %q: want one of %s", variable, value, strings.Join(levelNames, ", "))
	}
	if l > best {
		return best, fmt.Errorf("%s: level %v: this processor or build has %v at most", variable, l, best)
	}
	return l, nil
}

// Err says what is wrong with the value of RNA_CPU. The level is the best then.
func Err() error { return invalid }

// Levels lists the levels that processor and build have, the best last.
func Levels() []Level {
	return []Level{Go, AVX2, AVX512}[:best+1]
}

// Force makes one of [Levels] the level of what is made from then on, and returns a function that restores the one
// before: the hook for tests.
func Force(l Level) (restore func()) {
	before := current.Swap(&sets[l])
	return func() { current.Store(before) }
}
