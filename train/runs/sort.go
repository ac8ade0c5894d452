package runs

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"onlinerna/train"
)

// A column is a value of a run besides its options.
type column struct {
	name string
	text func(*Run) string
}

var columns = []column{
	{"name", func(r *Run) string { return r.Name }},
	{"state", func(r *Run) string { return string(r.State) }},
	{"best", func(r *Run) string {
		if b := r.Best(); b != nil {
			return fmt.Sprint(b.Score.Error())
		}
		return ""
	}},
	{"loss", func(r *Run) string {
		if b := r.Best(); b != nil {
			return fmt.Sprint(b.Score.Loss)
		}
		return ""
	}},
	{"done", func(r *Run) string { return strconv.Itoa(r.Epoch()) }},
	{"time", func(r *Run) string { return strconv.FormatInt(r.Updated.UnixNano(), 10) }},
}

// Columns lists the names that Sort and Where know besides those of options: "best" and "loss" are of the best
// weights, "done" is the number of finished epochs, "time" that of the last record.
func Columns() (names []string) {
	for _, c := range columns {
		names = append(names, c.name)
	}
	return names
}

// value returns the function that reads a column or an option as text.
func value(name string) (func(*Run) string, error) {
	name = strings.ReplaceAll(name, "_", "-")
	for _, c := range columns {
		if c.name == name {
			return c.text, nil
		}
	}
	o, err := train.Options().Lookup(name)
	if err != nil {
		return nil, fmt.Errorf("%w; besides options there are %s", err, strings.Join(Columns(), ", "))
	}
	if o.Name == "data" {
		return (*Run).Data, nil
	}
	return func(r *Run) string { return r.Option(o.Name) }, nil
}

// Sort sorts runs by a column or an option: numbers by value, other text by the alphabet, missing values last.
func Sort(list []Run, by string, reverse bool) error {
	of, err := value(by)
	if err != nil {
		return err
	}
	slices.SortStableFunc(list, func(a, b Run) int { return Compare(of(&a), of(&b), reverse) })
	return nil
}

// Compare orders two values as Sort does.
func Compare(a, b string, reverse bool) int {
	if a == "" || b == "" {
		return cmp.Compare(len(b), len(a)) // missing values are last in both directions
	}
	c := cmp.Compare(a, b)
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	if errX == nil && errY == nil {
		c = cmp.Compare(x, y)
	}
	if reverse {
		c = -c
	}
	return c
}

// A Condition is NAME=VALUE, NAME!=VALUE, NAME<VALUE or NAME>VALUE, where NAME is a column or an option. After = and !=
// the value may be a pattern of path.Match.
type Condition struct {
	of          func(*Run) string
	name, value string
	operator    string
}

// ParseCondition parses a condition.
func ParseCondition(text string) (c Condition, err error) {
	at := strings.IndexAny(text, "=!<>")
	if at < 1 {
		return c, fmt.Errorf("%q is no condition: want one as state=done, lr<0.1 or model=resnet*", text)
	}
	c.name, c.operator, c.value = text[:at], text[at:at+1], text[at+1:]
	if c.operator == "!" {
		rest, ok := strings.CutPrefix(c.value, "=")
		if !ok {
			return c, fmt.Errorf("%q is no condition: want %s!=VALUE", text, c.name)
		}
		c.operator, c.value = "!=", rest
	}
	if c.of, err = value(c.name); err != nil {
		return c, err
	}
	switch c.operator {
	case "<", ">":
		if x, err := strconv.ParseFloat(c.value, 64); err != nil || math.IsNaN(x) {
			return c, fmt.Errorf("%q: want a number after %s", text, c.operator)
		}
	default:
		if _, err := path.Match(c.value, ""); err != nil {
			return c, fmt.Errorf("%q: %w", text, err)
		}
	}
	if c.name == "state" && !slices.ContainsFunc(train.States(), func(s train.State) bool {
		ok, _ := path.Match(c.value, string(s))
		return ok
	}) {
		return c, fmt.Errorf("no state is %q: there are running, done, stopped, interrupted, failed", c.value)
	}
	return c, nil
}

// Holds reports whether a run meets the condition.
func (c Condition) Holds(r *Run) bool {
	text := c.of(r)
	x, err := strconv.ParseFloat(text, 64)
	y, errY := strconv.ParseFloat(c.value, 64)
	numbers := errors.Join(err, errY) == nil
	switch c.operator {
	case "<":
		return numbers && x < y
	case ">":
		return numbers && x > y
	}
	ok, _ := path.Match(c.value, text)
	if c.name == "data" && !ok { // by its last folder, too
		ok, _ = path.Match(c.value, filepath.Base(text))
	}
	return (ok || numbers && x == y) == (c.operator == "=")
}

// Where returns the runs that meet all conditions.
func Where(list []Run, conditions ...Condition) []Run {
	return slices.DeleteFunc(slices.Clone(list), func(r Run) bool {
		return slices.ContainsFunc(conditions, func(c Condition) bool { return !c.Holds(&r) })
	})
}
