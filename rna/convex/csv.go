package convex

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
)

// ReadCSV reads rows of a target and features, with or without a header line. For the logistic loss targets are ±1 or
// any two labels, the larger of which is +1; for squares they are numbers. Errors are [*FileError]s with this name of
// the file.
func ReadCSV(r io.Reader, name string, loss Loss) (*Data, error) {
	bounded := &boundedRows{r: r}
	bounded.next()
	in, memory := csv.NewReader(bounded), newBudget()
	in.FieldsPerRecord = -1
	in.TrimLeadingSpace = true
	in.ReuseRecord = true
	t := &targets{file: name, loss: loss}
	var values []float64
	width, line := 0, 0
	for row := 0; ; row++ {
		record, err := in.Read()
		bounded.next()
		if err == io.EOF {
			break
		}
		if errors.Is(err, errLongRow) {
			return nil, &FileError{name, line + 1, err}
		}
		if bad := (*csv.ParseError)(nil); errors.As(err, &bad) {
			return nil, &FileError{name, bad.Line, bad.Err}
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		line, _ = in.FieldPos(0)
		if row == 0 {
			if width = len(record); width < 2 {
				return nil, &FileError{name, line,
					errors.New("one column only: want a target and features, separated by commas")}
			}
			record[0] = strings.TrimPrefix(record[0], "\ufeff")
			if isHeader(record) {
				continue
			}
		}
		if len(record) != width {
			return nil, &FileError{name, line, fmt.Errorf("%d columns, where the first line has %d", len(record),
				width)}
		}
		if err := memory.take(rowBytes + valueBytes*int64(padded(width-1))); err != nil {
			return nil, &FileError{name, line, err}
		}
		if err := t.add(strings.TrimSpace(record[0]), line); err != nil {
			return nil, err
		}
		for j, s := range record[1:] {
			v, err := number(strings.TrimSpace(s))
			if err != nil {
				err = fmt.Errorf("column %d %w", j+2, err)
				if j+2 == len(record) {
					err = fmt.Errorf("%w; the label is the first column", err)
				}
				return nil, &FileError{name, line, err}
			}
			values = append(values, v)
		}
		for range padded(width-1) - (width - 1) {
			values = append(values, 0)
		}
	}
	if len(values) == 0 {
		return nil, &FileError{name, 0, errors.New("no rows")}
	}
	y, labels, err := t.finish()
	if err != nil {
		return nil, err
	}
	x := &Matrix{n: len(y), d: width - 1, values: values, stride: padded(width - 1)}
	return &Data{X: x, Y: y, Labels: labels}, nil
}

// isHeader reports whether no feature of the first line is a number.
func isHeader(record []string) bool {
	for _, s := range record[1:] {
		if _, err := number(strings.TrimSpace(s)); err == nil || strings.TrimSpace(s) == "" {
			return false
		}
	}
	return true
}
