package data

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// MaxBad is the number of images of an epoch that may be unreadable: a share if below 1, otherwise a count.
type MaxBad float64

const (
	// UsualBad allows 1 % of the images: 10 at least, but no more than a tenth, rounded up.
	UsualBad MaxBad = -1
	// AllBad allows any number.
	AllBad MaxBad = math.MaxInt32
)

// Of returns how many of n images may be unreadable.
func (m MaxBad) Of(n int) int {
	switch {
	case m == UsualBad:
		return max(n/100, min(10, (n+9)/10))
	case m < 1:
		return int(float64(m)*float64(n) + 1e-9)
	}
	return min(int(m), n)
}

// Check returns an error unless m is a share or a count.
func (m MaxBad) Check() error {
	if m == UsualBad || m >= 0 && m < 1 || m >= 1 && m <= AllBad && float64(m) == math.Trunc(float64(m)) {
		return nil
	}
	return fmt.Errorf("max-bad %g: give a count, as 20, or a share below 1, as 0.05 or 5%%", float64(m))
}

// String is "auto", "all", or the number.
func (m MaxBad) String() string {
	switch m {
	case UsualBad:
		return "auto"
	case AllBad:
		return "all"
	}
	return strconv.FormatFloat(float64(m), 'g', -1, 64)
}

// ParseMaxBad reads a count, as 20, a share, as 0.05 or 5%, "all", or "auto" for UsualBad.
func ParseMaxBad(s string) (MaxBad, error) {
	switch s {
	case "auto":
		return UsualBad, nil
	case "all", "100%":
		return AllBad, nil
	}
	digits, percent := strings.CutSuffix(s, "%")
	x, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if err != nil || x < 0 {
		return 0, fmt.Errorf("max-bad %q: give a count, as 20, a share below 1, as 0.05 or 5%%, all or auto", s)
	}
	if m := MaxBad(x); !percent {
		return m, m.Check()
	}
	if x >= 100 {
		return 0, fmt.Errorf("max-bad %q: at most 100%%", s)
	}
	return MaxBad(x / 100), nil
}

// MarshalJSON writes a number, or "auto" or "all".
func (m MaxBad) MarshalJSON() ([]byte, error) {
	if m == UsualBad || m == AllBad {
		return json.Marshal(m.String())
	}
	return json.Marshal(float64(m))
}

// UnmarshalJSON reads a number, or a text as ParseMaxBad does.
func (m *MaxBad) UnmarshalJSON(b []byte) error {
	s := string(b)
	if strings.HasPrefix(s, `"`) {
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
	}
	if s == "null" {
		return nil
	}
	x, err := ParseMaxBad(s)
	if err == nil {
		*m = x
	}
	return err
}
