package convex

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// ReadARFF reads Weka's format, dense or sparse. The target is the attribute called class, label, target or y, or else
// the last one; others are features: numbers, or nominal ones of two values, which are 0 and 1. Targets and errors are
// as for [ReadCSV].
func ReadARFF(r io.Reader, name string, loss Loss) (*Data, error) {
	a := &arff{targets: targets{file: name, loss: loss}, start: []int{0}, memory: newBudget()}
	in := newLines(r, longestSplit)
	line, inData := 0, false
	for in.Scan() {
		line++
		text := strings.TrimSpace(in.Text())
		if text == "" || text[0] == '%' {
			continue
		}
		var err error
		switch keyword, rest, _ := strings.Cut(strings.ReplaceAll(text, "\t", " "), " "); {
		case inData:
			err = a.row(text, line)
		case strings.EqualFold(keyword, "@attribute"):
			err = a.attribute(strings.TrimSpace(rest))
		case strings.EqualFold(keyword, "@data"):
			inData = true
			err = a.header()
		case !strings.EqualFold(keyword, "@relation"):
			err = fmt.Errorf("%q before @data: want @relation or @attribute", keyword)
		}
		if bad := (*FileError)(nil); err != nil && !errors.As(err, &bad) {
			err = &FileError{name, line, err}
		}
		if err != nil {
			return nil, err
		}
	}
	if err := in.Err(); err != nil {
		return nil, &FileError{name, line + 1, err}
	}
	if a.rows == 0 {
		return nil, &FileError{name, 0, errors.New("no rows after @data")}
	}
	y, labels, err := a.finish()
	if err != nil {
		return nil, err
	}
	d := &Data{Y: y, Labels: labels}
	if a.sparse {
		d.X, err = NewSparse(a.rows, len(a.attributes)-1, a.start, a.index, a.values)
	} else {
		d.X = dense(a.rows, len(a.attributes)-1, a.values)
	}
	return d, err
}

// arff is a file being read.
type arff struct {
	targets
	attributes []attribute
	target     int
	rows       int
	sparse     bool
	start      []int
	index      []int32
	values     []float64
	memory     *budget
}

// An attribute is a number, or one of some values.
type attribute struct {
	name    string
	nominal []string
}

// attribute parses the rest of a line after @attribute.
func (a *arff) attribute(text string) error {
	name, rest := text, ""
	if q := text[:min(1, len(text))]; q == "'" || q == `"` {
		end := strings.Index(text[1:], q)
		if end < 0 {
			return fmt.Errorf("attribute %s lacks its closing quote", text)
		}
		name, rest = text[1:end+1], text[end+2:]
	} else if i := strings.IndexAny(text, " {"); i >= 0 {
		name, rest = text[:i], text[i:]
	}
	rest = strings.TrimSpace(rest)
	at := attribute{name: name}
	switch kind := strings.ToLower(rest); {
	case kind == "numeric" || kind == "real" || kind == "integer":
	case strings.HasPrefix(rest, "{") && strings.HasSuffix(rest, "}"):
		values, err := arffFields(rest[1 : len(rest)-1])
		if err != nil {
			return err
		}
		at.nominal = values
	default:
		return fmt.Errorf("attribute %q is of type %q: want numeric, real, integer or {values}", name, rest)
	}
	a.attributes = append(a.attributes, at)
	return a.memory.take(int64(len(text)) + 64 + 16*int64(len(at.nominal)))
}

// header finds the target when all attributes are known.
func (a *arff) header() error {
	if len(a.attributes) < 2 {
		return fmt.Errorf("%d attributes: want features and a target", len(a.attributes))
	}
	a.target = len(a.attributes) - 1
	for i, at := range a.attributes {
		if slices.Contains([]string{"class", "label", "target", "y"}, strings.ToLower(at.name)) {
			a.target = i
		}
	}
	for i, at := range a.attributes {
		if i != a.target && at.nominal != nil && len(at.nominal) != 2 {
			return fmt.Errorf("attribute %q has %d values: features are numbers, or have two", at.name, len(at.nominal))
		}
	}
	return nil
}

// row takes a line after @data.
func (a *arff) row(text string, line int) error {
	inner, isSparse := strings.CutPrefix(text, "{")
	if a.rows == 0 {
		a.sparse = isSparse
	}
	if isSparse != a.sparse {
		return errors.New("sparse rows, in braces, among dense ones")
	}
	if isSparse {
		var ok bool
		if inner, ok = strings.CutSuffix(strings.TrimSpace(inner), "}"); !ok {
			return errors.New("a sparse row without its closing brace")
		}
	}
	fields, err := arffFields(inner)
	if err != nil {
		return err
	}
	label, labelled := "", false
	last := -1
	if !isSparse && len(fields) != len(a.attributes) {
		return fmt.Errorf("%d values for %d attributes", len(fields), len(a.attributes))
	}
	for i, f := range fields {
		if isSparse {
			number, value, _ := strings.Cut(f, " ")
			j, err := strconv.Atoi(number)
			if err != nil || j <= last || j >= len(a.attributes) || j > math.MaxInt32 {
				return fmt.Errorf("%q after attribute %d: want a number from 0 and a value, ascending", f, last)
			}
			i, f, last = j, unquoted(strings.TrimSpace(value)), j
		}
		if i == a.target {
			if f == "?" {
				return a.attributes[i].missing()
			}
			label, labelled = f, true
			continue
		}
		v, err := a.attributes[i].value(f)
		if err != nil {
			return err
		}
		if isSparse {
			if i > a.target {
				i--
			}
			a.index = append(a.index, int32(i))
		}
		a.values = append(a.values, v)
	}
	if !labelled { // a sparse row leaves out zeros, and the first of nominal values
		if label = "0"; a.attributes[a.target].nominal != nil {
			label = a.attributes[a.target].nominal[0]
		}
	}
	if err := a.memory.take(rowBytes + sparseBytes*int64(len(fields))); err != nil {
		return err
	}
	a.rows++
	a.start = append(a.start, len(a.values))
	return a.add(label, line)
}

func (at attribute) missing() error {
	return fmt.Errorf("the value of attribute %q is missing: fill it in first", at.name)
}

func (at attribute) value(s string) (float64, error) {
	if s == "?" {
		return 0, at.missing()
	}
	if at.nominal != nil {
		k := slices.Index(at.nominal, s)
		if k < 0 {
			return 0, fmt.Errorf("%q is no value of attribute %q", s, at.name)
		}
		return float64(k), nil
	}
	v, err := number(s)
	if err != nil {
		return 0, fmt.Errorf("attribute %q %w", at.name, err)
	}
	return v, nil
}

// arffFields splits at commas outside quotes.
func arffFields(s string) ([]string, error) {
	var fields []string
	quote, from := byte(0), 0
	for i := range len(s) {
		switch c := s[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == ',':
			fields = append(fields, unquoted(strings.TrimSpace(s[from:i])))
			from = i + 1
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("%q lacks its closing quote", s[from:])
	}
	if last := strings.TrimSpace(s[from:]); last != "" || len(fields) > 0 {
		fields = append(fields, unquoted(last))
	}
	return fields, nil
}

func unquoted(s string) string {
	if n := len(s); n >= 2 && (s[0] == '\'' || s[0] == '"') && s[n-1] == s[0] {
		return s[1 : n-1]
	}
	return s
}
