package option

import (
	"errors"
	"strconv"
	"strings"
)

// Share is a fraction of a whole, such as 0.2 or 20%. 0 means unset. An option's Check receives the number.
type Share float64

var _ Value = (*Share)(nil)

// Set implements Value.
func (s *Share) Set(text string) error {
	if digits, percent := strings.CutSuffix(text, "%"); percent {
		text = strings.TrimSpace(digits) + "e-2"
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return errors.New("want a number, as 0.2 or 20%")
	}
	*s = Share(x)
	return nil
}

// String returns the number, empty for 0.
func (s *Share) String() string {
	if *s == 0 {
		return ""
	}
	return strconv.FormatFloat(float64(*s), 'g', -1, 64)
}

// Float returns the number.
func (s *Share) Float() float64 { return float64(*s) }

// Unset implements Value.
func (s *Share) Unset() { *s = 0 }

// Type is "number".
func (s *Share) Type() string { return "number" }
