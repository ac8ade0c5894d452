package convex

import (
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
	in, memory := newLines(r, longestLine), newBudget()
	t := &targets{file: name, loss: loss}
	start := []int{0}
	var index []int32
	var values []float64
	width, widest := 0, 0 // widest is the line with the last column
	line, size := 0, int64(0)
	for in.Scan() {
		line++
		size += int64(len(in.Bytes())) + 1
		text, _, _ := strings.Cut(in.Text(), "#")
		last := -1 // before the target
		for f := range strings.FieldsSeq(text) {
			if last < 0 {
				if err := t.add(f, line); err != nil {
					return nil, err
				}
				last = 0
				continue
			}
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
			if last = j; j > width {
				width, widest = j, line
			}
			if v != 0 {
				index, values = append(index, int32(j-1)), append(values, v)
			}
		}
		if last < 0 {
			continue
		}
		if err := memory.take(rowBytes + sparseBytes*int64(len(values)-start[len(start)-1])); err != nil {
			return nil, &FileError{name, line, err}
		}
		start = append(start, len(values))
	}
	if err := in.Err(); err != nil {
		return nil, &FileError{name, line + 1, err}
	}
	if width == 0 {
		return nil, &FileError{name, 0, errors.New("no rows with features")}
	}
	if err := columnsError(width, size); err != nil {
		return nil, &FileError{name, widest, err}
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
