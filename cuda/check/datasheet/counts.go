package datasheet

import (
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"onlinerna/cuda/number"
)

// Small is the work in bytes below which a kernel's time is that of its start.
const Small = 4 << 20

// Counts are the instructions that kernels run for each byte that they must move, as an interpreter of PTX counts them:
// package check/count writes them.
type Counts struct {
	Digest  string             // of the kernels' sources
	PerByte map[string]float64 // by Key
}

//go:embed instructions.tsv
var instructions string

// Known are the counts for the kernels of nets and of RNA.
var Known = func() *Counts {
	c, err := parseCounts(instructions)
	if err != nil {
		panic(err) // the file is embedded
	}
	return c
}()

// Key identifies a kernel with a type of elements: 0 float32, 1 bfloat16, 2 float16.
func Key(kernel, store string) string { return kernel + "\t" + store }

// Of is the number of instructions of a kernel that moves these bytes in a precision; 0 if it was not counted.
func (c *Counts) Of(kernel string, p number.Precision, bytes int64) int64 {
	for _, store := range []string{map[number.Precision]string{number.BFloat16: "1", number.Float16: "2"}[p], "0"} {
		if n, ok := c.PerByte[Key(kernel, store)]; ok {
			return int64(n * float64(bytes))
		}
	}
	return 0
}

const countsHead = "# instructions for each byte; kernels "

// String is the table's text.
func (c *Counts) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s\n", countsHead, c.Digest)
	for _, key := range slices.Sorted(maps.Keys(c.PerByte)) {
		fmt.Fprintf(&b, "%s\t%.3f\n", key, c.PerByte[key])
	}
	return b.String()
}

// ReadCounts reads a table.
func ReadCounts(file string) (*Counts, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return parseCounts(string(b))
}

func parseCounts(text string) (*Counts, error) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	digest, ok := strings.CutPrefix(lines[0], countsHead)
	if !ok {
		return nil, fmt.Errorf("not a table of instructions: it begins with %q", lines[0])
	}
	c := &Counts{digest, map[string]float64{}}
	for _, line := range lines[1:] {
		at := strings.LastIndexByte(line, '\t')
		n, err := strconv.ParseFloat(line[at+1:], 64)
		if at < 0 || err != nil {
			return nil, fmt.Errorf("not a line of a kernel: %q", line)
		}
		c.PerByte[line[:at]] = n
	}
	return c, nil
}

// Compare returns an error if other has other counts, or is of other kernels.
func (c *Counts) Compare(other *Counts) error {
	var errs []error
	if c.Digest != other.Digest {
		errs = append(errs, errors.New("the table is of other kernels"))
	}
	for _, key := range slices.Sorted(maps.Keys(other.PerByte)) {
		if want, got := c.PerByte[key], other.PerByte[key]; math.Abs(want-got) > .001 {
			errs = append(errs, fmt.Errorf("%s: %.3f instructions for each byte, the table has %.3f",
				strings.ReplaceAll(key, "\t", " "), got, want))
		}
	}
	return errors.Join(errs...)
}
