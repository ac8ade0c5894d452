package convex

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// ReadLIBSVM reads sparse rows "target column:value …", with columns from 1, ascending, and comments after #.
// Targets and errors are as for [ReadCSV]. There are as many features as the largest column says.
func ReadLIBSVM(r io.Reader, name string, loss Loss) (*Data, error) {
	in := bufio.NewScanner(r)
	in.Buffer(nil, 1<<28)
	t := &targets{file: name, loss: loss}
	start := []int{0}
	var index []int32
	var values []float64
	width := 0
	line := 0
	for in.Scan() {
		line++
		text, _, _ := strings.Cut(in.Text(), "#")
		fields := strings.Fields(text)
		if len(fields) == 0 {
			continue
		}
		if err := t.add(fields[0], line); err != nil {
			return nil, err
		}
		last := 0
		for _, f := range fields[1:] {
			column, value, found := strings.Cut(f, ":")
			j, err := strconv.Atoi(column)
			switch {
			case !found:
				return nil, &FileError{name, line, fmt.Errorf("%q is not column:value", f)}
			case err != nil || j < 1 || j > math.MaxInt32:
				return nil, &FileError{name, line, fmt.Errorf("column %q: want a number from 1", column)}
			case j <= last:
				return nil, &FileError{name, line, fmt.Errorf("column %d after column %d: want them ascending", j,
					last)}
			}
			v, err := number(value)
			if err != nil {
				return nil, &FileError{name, line, fmt.Errorf("column %d %w", j, err)}
			}
			last = j
			width = max(width, j)
			if v != 0 {
				index, values = append(index, int32(j-1)), append(values, v)
			}
		}
		start = append(start, len(values))
	}
	if err := in.Err(); err != nil {
		return nil, &FileError{name, line + 1, err}
	}
	if width == 0 {
		return nil, &FileError{name, 0, errors.New("no rows with features")}
	}
	y, labels, err := t.finish()
	if err != nil {
		return nil, err
	}
	x, err := NewSparse(len(y), width, start, index, values)
	if err != nil {
		return nil, err
	}
	return &Data{X: x, Y: y, Labels: labels}, nil
}
