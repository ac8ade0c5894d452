package option

import (
	"errors"
	"fmt"
)

// Checks for Option.Check. All options reject non-finite numbers.

// Positive rejects numbers ≤ 0.
func Positive(x float64) error {
	if !(x > 0) {
		return errors.New("must be above 0")
	}
	return nil
}

// NotNegative rejects numbers < 0.
func NotNegative(x float64) error {
	if !(x >= 0) {
		return errors.New("must not be negative")
	}
	return nil
}

// AtLeast rejects numbers < a.
func AtLeast(a float64) func(float64) error {
	return func(x float64) error {
		if !(x >= a) {
			return fmt.Errorf("must be at least %g", a)
		}
		return nil
	}
}

// Between rejects numbers < a and > b.
func Between(a, b float64) func(float64) error {
	return func(x float64) error {
		if !(x >= a && x <= b) {
			return fmt.Errorf("must lie between %g and %g", a, b)
		}
		return nil
	}
}

// Below rejects numbers < 0 and ≥ b.
func Below(b float64) func(float64) error {
	return func(x float64) error {
		if !(x >= 0 && x < b) {
			return fmt.Errorf("must lie in [0, %g)", b)
		}
		return nil
	}
}

// Inside rejects numbers ≤ a and ≥ b.
func Inside(a, b float64) func(float64) error {
	return func(x float64) error {
		if !(x > a && x < b) {
			return fmt.Errorf("must lie above %g and below %g", a, b)
		}
		return nil
	}
}

// UpTo rejects numbers ≤ 0 and > b.
func UpTo(b float64) func(float64) error {
	return func(x float64) error {
		if !(x > 0 && x <= b) {
			return fmt.Errorf("must lie above 0 and up to %g", b)
		}
		return nil
	}
}

// OneOf is a list of values for Option.Values.
func OneOf[T ~string](list ...T) func() []string {
	return func() (out []string) {
		for _, x := range list {
			out = append(out, string(x))
		}
		return out
	}
}
