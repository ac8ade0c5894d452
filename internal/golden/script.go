package golden

import (
	"fmt"
	"math"
	"strings"
)

// A Script collects the lines of a golden file.
type Script struct{ text strings.Builder }

// String returns the lines.
func (s *Script) String() string { return s.text.String() }

// Line adds a line of words: numbers with 12 digits, elements of slices, and errors in quotes.
func (s *Script) Line(words ...any) {
	for i, w := range words {
		if i > 0 {
			s.text.WriteByte(' ')
		}
		s.text.WriteString(word(w))
	}
	s.text.WriteByte('\n')
}

func word(w any) string {
	switch w := w.(type) {
	case nil:
		return "nil"
	case error:
		return fmt.Sprintf("%q", w.Error())
	case float64:
		if math.Abs(w) < 1e-20 {
			return small(w, 12)
		}
		return fmt.Sprintf("%.12g", w)
	case []float64:
		return list(w)
	case []int:
		return list(w)
	case []string:
		return fmt.Sprintf("%q", w)
	}
	return fmt.Sprint(w)
}

func list[T any](v []T) string {
	words := make([]string, len(v))
	for i, e := range v {
		words[i] = word(e)
	}
	return "[" + strings.Join(words, " ") + "]"
}

// Rough is v with as many digits, at most 11, as an error relative to v leaves certain on all processors.
func Rough(v, err float64) string {
	digits := certain(err)
	if math.Abs(v) < 1e-6 {
		return small(v, digits)
	}
	return fmt.Sprintf("%.*g", digits, v)
}

// Around are the elements of v with digits that an error, relative to size, leaves certain.
func Around(v []float64, size, err float64) string {
	digits := max(0, certain(err)-1-int(math.Floor(math.Log10(size))))
	words := make([]string, len(v))
	for i, e := range v {
		words[i] = strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.*f", digits, e), "0"), ".")
		if digits == 0 {
			words[i] = fmt.Sprintf("%.0f", e)
		}
	}
	return "[" + strings.Join(words, " ") + "]"
}

func certain(err float64) int {
	if err >= 1 {
		return 2
	}
	if err > 1e-14 {
		return max(2, min(11, int(-math.Log10(err))-2))
	}
	return 11
}

// small keeps a number that [Numbers] would take for 0 apart from others.
func small(v float64, digits int) string {
	if v == 0 || math.IsNaN(v) {
		return fmt.Sprint(v)
	}
	mantissa, exponent, _ := strings.Cut(fmt.Sprintf("%.*e", digits-1, v), "e")
	return mantissa + "×10^" + exponent
}
