package option

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// Bytes is a number of bytes, such as 800MB or 2GB.
type Bytes int64

var _ Checker = (*Bytes)(nil)

var byteUnits = []struct {
	name  string
	bytes float64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9},
	{"TB", 1e12}, {"B", 1}, {"", 1}}

// Set implements Value.
func (b *Bytes) Set(s string) error {
	for _, u := range byteUnits {
		number, ok := strings.CutSuffix(strings.ToLower(s), strings.ToLower(u.name))
		if !ok {
			continue
		}
		x, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || !(x*u.bytes >= 1) || x*u.bytes > math.MaxInt64/2 {
			break
		}
		*b = Bytes(x * u.bytes)
		return nil
	}
	return errors.New("want a number of bytes, as 800MB or 2GB")
}

// String returns the exact number of bytes.
func (b *Bytes) String() string {
	if *b == 0 {
		return ""
	}
	return strconv.FormatInt(int64(*b), 10)
}

// Check implements Checker.
func (b *Bytes) Check() error { return NotNegative(float64(*b)) }

// Unset implements Value.
func (b *Bytes) Unset() { *b = 0 }

// Type is "size".
func (b *Bytes) Type() string { return "size" }
