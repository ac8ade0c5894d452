package ranks

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"onlinerna/internal/text"
)

// ErrTimeout means that an operation did not finish in time.
var ErrTimeout = errors.New("the other ranks did not join in time")

// A TimeoutError means that some ranks did not join an operation in time. The ranks can only be aborted then.
type TimeoutError struct {
	What    string // the operation
	At      At
	After   time.Duration
	Waiting string   // the rank that reports it
	Missing []string // the ranks that were not waiting, with their hosts; empty if unknown
}

func (e *TimeoutError) Error() string {
	who := "all ranks wait, so they disagree about the next operation"
	if len(e.Missing) > 0 {
		who = "missing: " + strings.Join(e.Missing, ", ")
	}
	return fmt.Sprintf("%v: %s was not done after %v; %s", e.At, e.What, e.After, who)
}

// Unwrap makes errors.Is(err, ErrTimeout) true.
func (e *TimeoutError) Unwrap() error { return ErrTimeout }

// A RankError is one rank's error that all ranks know.
type RankError struct {
	Rank int
	Name string // the rank and its host
	Err  error  // on other ranks only its text
}

func (e *RankError) Error() string { return e.Name + ": " + e.Err.Error() }
func (e *RankError) Unwrap() error { return e.Err }

// Common reports whether all ranks hold this error because Together returned it; each rank can then end by itself.
func Common(err error) bool { return errors.As(err, new(*RankError)) }

// Any reports whether the flag is set on at least one rank.
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

// Together returns nil if err is nil on all ranks. Otherwise every rank gets a *RankError with the error of the lowest
// rank that has one; a single process gets err itself. An error that all ranks already know from an earlier call is
// returned at once.
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

// A Fact is a value that must be the same on all ranks.
type Fact struct{ Name, Value string }

// Compare checks before any joint computation that the facts agree on all ranks. The error names the differing rank and
// fact. All ranks pass facts with the same names.
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

// describe lists the value of most ranks and the ranks that differ.
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
