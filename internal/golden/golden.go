// Package golden compares texts that tests make with files in testdata/golden of their package.
//
// With ONLINERNA_WRITE=1 in the environment tests write the files instead, and fail, so that none passes uncompared.
// Read the files before you keep them: they define the right results.
package golden

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Write is the environment variable that, set to 1, makes tests write the files.
const Write = "ONLINERNA_WRITE"

// Check compares got with the file of this name byte by byte.
func Check(t testing.TB, name, got string) {
	t.Helper()
	compare(t, name, got, func(got, want string) bool { return got == want })
}

// Numbers compares got with the file of this name line by line. The numbers in a line agree within 1e-9 of their size,
// or 1e-12, since processors and compilers round differently; the text between them is equal.
func Numbers(t testing.TB, name, got string) {
	t.Helper()
	compare(t, name, got, near)
}

// compare reports the first line that differs from the file's.
func compare(t testing.TB, name, got string, equal func(got, want string) bool) {
	t.Helper()
	path := filepath.Join("testdata", "golden", filepath.FromSlash(name))
	if os.Getenv(Write) == "1" {
		err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(got), 0o644))
		t.Errorf("%s is written and compared with nothing: unset %s (error: %v)", path, Write, err)
		return
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Errorf("%v; %s=1 writes it", err, Write)
		return
	}
	a, b := strings.Split(got, "\n"), strings.Split(string(file), "\n")
	for i := range max(len(a), len(b)) {
		switch {
		case i == len(a):
			t.Errorf("%s:%d: the text ends before\n\t%s", path, i+1, part(b[i], 0))
		case i == len(b):
			t.Errorf("%s ends before line %d:\n\t%s", path, i+1, part(a[i], 0))
		case !equal(a[i], b[i]):
			at := 0
			for at < min(len(a[i]), len(b[i])) && a[i][at] == b[i][at] {
				at++
			}
			t.Errorf("%s:%d differs from byte %d on: got\n\t%s\nwant\n\t%s", path, i+1, at+1, part(a[i], at), part(b[i], at))
		default:
			continue
		}
		return
	}
}

// part returns a line; of a long line it returns the text around a byte.
func part(line string, at int) string {
	const before, after = 80, 160
	from, to := max(0, at-before), min(len(line), at+after)
	s := line[from:to]
	if from > 0 {
		s = "…" + s
	}
	if to < len(line) {
		s += "…"
	}
	return s
}

var number = regexp.MustCompile(`[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?`)

// near reports whether two lines are equal but for the rounding of their numbers.
func near(got, want string) bool {
	if !slices.Equal(number.Split(got, -1), number.Split(want, -1)) {
		return false
	}
	numbers := number.FindAllString(want, -1)
	for i, s := range number.FindAllString(got, -1) {
		x, _ := strconv.ParseFloat(s, 64) // one that is too large is infinite
		y, _ := strconv.ParseFloat(numbers[i], 64)
		if s != numbers[i] && !(math.Abs(x-y) <= max(1e-12, 1e-9*math.Abs(y))) {
			return false
		}
	}
	return true
}
