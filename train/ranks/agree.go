package ranks

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"onlinerna/internal/text"
)

// ErrTimeout says that an operation was not done in time.
var ErrTimeout = errors.New("the other ranks did not join in time")

// A TimeoutError says that ranks did not join an operation in time. The ranks can only be aborted then.
type TimeoutError struct {
	What    string // the operation
	At      At
	After   time.Duration
	Waiting string   // the rank that says so
	Missing []string // the ranks that were not waiting, too, with their hosts; empty if nobody knows
}

func (e *TimeoutError) Error() string {
	who := "all ranks wait, so they disagree about what is next"
	if len(e.Missing) > 0 {
		who = "missing: " + strings.Join(e.Missing, ", ")
	}
	return fmt.Sprintf("%v: %s was not done after %v; %s", e.At, e.What, e.After, who)
}

// Unwrap makes it an ErrTimeout.
func (e *TimeoutError) Unwrap() error { return ErrTimeout }

// A RankError is an error of one rank that all ranks know of.
type RankError struct {
	Rank int
	Name string // the rank and its host
	Err  error  // on other ranks than this one its text alone
}

func (e *RankError) Error() string { return e.Name + ": " + e.Err.Error() }
func (e *RankError) Unwrap() error { return e.Err }

// Common says whether all ranks have an error, since it came out of Together: then each can end by itself.
func Common(err error) bool { return errors.As(err, new(*RankError)) }

// Any says whether a flag is set on any rank.
func (g *Group) Any(flag bool) (bool, error) {
	if g == nil {
		return flag, nil
	}
	x := []float64{0}
	if flag {
		x[0] = 1
	}
	err := g.Max64(x)
	return x[0] > 0, err
}

// Together is nil if err is nil on all ranks. Else it is, on all ranks, a *RankError with the error of the first rank that has one; for a single
// process it is err itself. What all ranks know already, of an earlier call, is passed on at once.
func (g *Group) Together(err error) error {
	if g == nil || Common(err) {
		return err
	}
	failed, e := g.Any(err != nil)
	if e != nil || !failed {
		return errors.Join(err, e)
	}
	own := ""
	if err != nil {
		own = err.Error()
	}
	list, e := g.Gather([]byte(own))
	if e != nil {
		return errors.Join(err, e)
	}
	k := slices.IndexFunc(list, func(b []byte) bool { return len(b) > 0 })
	if k < 0 {
		return errors.Join(err, errors.New("an error without a text"))
	}
	r := &RankError{Rank: k, Name: g.Name(k), Err: errors.New(text.PrintableLines(string(list[k])))}
	if k == g.Rank() {
		r.Err = err
	}
	return r
}

// A Fact is something that has to be the same on all ranks.
type Fact struct{ Name, Value string }

// Compare finds out, before anything is computed together, whether facts are the same on all ranks. The error says which rank differs in what. All
// ranks name equal facts.
func (g *Group) Compare(facts ...Fact) error {
	if g == nil {
		return nil
	}
	var lines []string
	for _, f := range facts {
		lines = append(lines, f.Name+"\x01"+f.Value)
	}
	all, err := g.Gather([]byte(strings.Join(lines, "\x00")))
	if err != nil {
		return err
	}
	var differ []string
	for i, f := range facts {
		values := map[string][]int{}
		of := make([]string, len(all))
		for k, b := range all {
			own := strings.Split(string(b), "\x00")
			name, value, _ := strings.Cut(own[min(i, len(own)-1)], "\x01")
			if name != f.Name {
				value = "nothing"
			}
			value = text.Printable(value)
			values[value] = append(values[value], k)
			of[k] = value
		}
		if len(values) > 1 {
			differ = append(differ, g.describe(f.Name, of, values))
		}
	}
	if len(differ) > 0 {
		return &RankError{Rank: 0, Name: "the ranks differ", Err: errors.New(strings.Join(differ, "; "))}
	}
	return nil
}

// describe says what most ranks have, and which have something else.
func (g *Group) describe(what string, of []string, values map[string][]int) string {
	usual := of[0]
	for _, v := range of {
		if len(values[v]) > len(values[usual]) {
			usual = v
		}
	}
	var others []string
	for k, v := range of {
		if v != usual {
			others = append(others, fmt.Sprintf("%s has %s", g.Name(k), v))
		}
	}
	return fmt.Sprintf("%s: %s, %s has %s", what, strings.Join(others, ", "), g.Name(values[usual][0]), usual)
}
