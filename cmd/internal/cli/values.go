package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"onlinerna/data"
	"onlinerna/internal/parallel"
	"onlinerna/train/option"
)

// A value is a flag: its type, its present text, and how a text sets it.
type value struct {
	kind string
	text func() string
	set  func(s string) error
}

// Type implements pflag.Value.
func (v value) Type() string { return v.kind }

// String implements pflag.Value.
func (v value) String() string {
	if v.text == nil { // pflag's zero value
		return ""
	}
	return v.text()
}

// Set implements pflag.Value.
func (v value) Set(s string) error { return v.set(s) }

// Floats adds a list of numbers, which has no default to show.
func (g Group) Floats(p *[]float64, name, usage string) {
	g.Float64SliceVar(p, name, nil, usage)
	g.Lookup(name).DefValue = ""
}

// Share adds a part of a whole, as 0.2 or 20%.
func (g Group) Share(p *float64, name, usage string) { g.Var((*option.Share)(p), name, usage) }

// Bytes adds an amount of memory, as 2GB.
func (g Group) Bytes(p *int64, name, usage string) { g.Var((*option.Bytes)(p), name, usage) }

// Cores adds a number of goroutines or threads.
func (g Group) Cores(p *int, name, usage string) {
	g.Var(value{"int", func() string { return strconv.Itoa(*p) }, func(s string) error {
		n, err := strconv.Atoi(s)
		switch {
		case err != nil:
			return err
		case n < 0:
			return errors.New("must not be negative")
		case n > parallel.Most:
			return fmt.Errorf("at most %d, and no more than there are cores are of use", parallel.Most)
		}
		*p = n
		return nil
	}}, name, usage)
}

// Images adds a number of images from 1, or a word that stands for another number.
func (g Group) Images(p *int, word string, number int, name, usage string) {
	g.Var(value{"images", func() string {
		if *p == number {
			return word
		}
		return strconv.Itoa(*p)
	}, func(s string) error {
		n, err := strconv.Atoi(s)
		switch {
		case s == word:
			n = number
		case err != nil:
			return fmt.Errorf("%q is no number of images: want one from 1, or %s", s, word)
		case n < 1:
			return fmt.Errorf("batch %d must be at least 1, or %s", n, word)
		}
		*p = n
		return nil
	}}, name, usage)
	g.Values(name, word)
}

// MaxBad adds a bound on unreadable images.
func (g Group) MaxBad(p *data.MaxBad, name, usage string) {
	*p = data.UsualBad
	g.Var(value{"number", p.String, func(s string) error {
		m, err := data.ParseMaxBad(s)
		if err == nil {
			*p = m
		}
		return err
	}}, name, usage)
	g.Lookup(name).DefValue = ""
}

// Numbers adds a sorted list of numbers from 1 to most, with ranges as 2-10 and 10-50:10. It has no default to show.
func (g Group) Numbers(p *[]int, most int, name, usage string) {
	text := func() string { return strings.Trim(strings.ReplaceAll(fmt.Sprint(*p), " ", ","), "[]") }
	g.Var(value{"list", text, func(s string) error {
		var list []int
		for part := range strings.SplitSeq(s, ",") {
			numbers, err := numbersIn(strings.TrimSpace(part), most)
			if err != nil {
				return err
			}
			list = append(list, numbers...)
		}
		slices.Sort(list)
		*p = slices.Compact(list)
		return nil
	}}, name, usage)
	g.Lookup(name).DefValue = ""
}

// numbersIn lists the numbers of a number or a range.
func numbersIn(part string, most int) (list []int, err error) {
	from, to, isRange := strings.Cut(part, "-")
	to, by, hasStep := strings.Cut(to, ":")
	lo, err := strconv.Atoi(from)
	hi, step := lo, 1
	if err == nil && isRange {
		hi, err = strconv.Atoi(to)
	}
	if err == nil && hasStep {
		step, err = strconv.Atoi(by)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("%q is no number and no range such as 2-10 or 10-50:10", part)
	case lo < 1 || hi > most:
		return nil, fmt.Errorf("%q: want numbers from 1 to %d", part, most)
	case hi < lo || step < 1:
		return nil, fmt.Errorf("%q is an empty range", part)
	}
	for n := lo; n <= hi; n += step {
		list = append(list, n)
	}
	return list, nil
}
