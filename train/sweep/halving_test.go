package sweep

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

func TestRungs(t *testing.T) {
	for _, c := range []struct {
		epochs, eta, first int
		want               string
	}{
		{16, 0, 0, "[16]"}, {16, 3, 0, "[1 2 6 16]"}, {90, 3, 0, "[4 10 30 90]"}, {90, 3, 1, "[1 2 4 10 30 90]"},
		{90, 3, 5, "[5 10 30 90]"}, {1, 3, 0, "[1]"}, {2, 2, 0, "[1 2]"}, {27, 3, 0, "[1 3 9 27]"}, {16, 4, 20, "[16]"},
		{100, 10, 0, "[1 10 100]"},
	} {
		if got := fmt.Sprint(rungs(c.epochs, c.eta, c.first)); got != c.want {
			t.Errorf("%d epochs by %d from %d: %s, want %s", c.epochs, c.eta, c.first, got, c.want)
		}
	}
}

// decide runs h on candidates whose values do not depend on the epoch, and lists the order in which they train.
func decide(t *testing.T, h Halving, values [][]Value) (log string, reached []int) {
	t.Helper()
	var words []string
	reached, err := h.Decide(context.Background(), len(values), func(c, epochs int) func() ([]Value, error) {
		words = append(words, fmt.Sprintf("%d:%d", c, epochs))
		return func() ([]Value, error) { return values[c], nil }
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(words, " "), reached
}

func alone(list ...float64) (values [][]Value) {
	for _, x := range list {
		values = append(values, []Value{{x, 0}})
	}
	return values
}

// By hand. With one worker the best of the first three goes on at once, and a later better one, too.
func TestDecide(t *testing.T) {
	h := Halving{Rungs: []int{1, 3, 9}, Eta: 3, Width: 1}
	got, reached := decide(t, h, alone(5, 4, 3, 2, 1, 6, 7, 8, 9))
	if want := "0:1 1:1 2:1 2:3 3:1 3:3 4:1 4:3 4:9 5:1 6:1 7:1 8:1"; got != want || fmt.Sprint(reached) !=
		"[0 0 1 1 2 0 0 0 0]" {
		t.Errorf("%s, %v; want %s", got, reached, want)
	}
	// With two workers 0 and 1 arrive at the time 1, 2 and 3 at 2: first 2 is the best of three, then 3 of four.
	// Two arrive at 3, and the better one goes on in the end, since no third one comes.
	h.Width = 2
	got, _ = decide(t, h, alone(5, 4, 3, 2, 6))
	if want := "0:1 1:1 2:1 3:1 2:3 3:3 4:1 3:9"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	// Long ways keep both workers busy: 1 arrives at 5 and 2 at 6, with 3 behind it; 4 begins before 3 goes on.
	got, _ = decide(t, Halving{Rungs: []int{1, 5}, Eta: 2, Width: 2}, alone(8, 7, 6, 5, 4))
	if want := "0:1 1:1 2:1 1:5 2:5 3:1 4:1 3:5 4:5"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	// All at once are compared when they are there, and a diverged candidate never goes on.
	h.Width = 9
	inf := math.Inf(1)
	got, _ = decide(t, h, alone(inf, inf, inf))
	if want := "0:1 1:1 2:1"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	// If all others diverge, now or later, the one that is left goes on.
	got, _ = decide(t, h, alone(inf, 7, inf))
	if want := "0:1 1:1 2:1 1:3 1:9"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	// Without halving all train to the end.
	got, reached = decide(t, Halving{Rungs: []int{9}, Width: 2}, alone(3, 2, 1))
	if got != "0:9 1:9 2:9" || fmt.Sprint(reached) != "[0 0 0]" {
		t.Errorf("%s, %v", got, reached)
	}
	// The loss decides between equal errors.
	tie := [][]Value{{{1, 3}}, {{1, 1}}, {{1, 2}}}
	if got, _ := decide(t, Halving{Rungs: []int{1, 2}, Eta: 3, Width: 3}, tie); !strings.HasSuffix(got, " 1:2") {
		t.Error(got)
	}
}

// With seeds, candidates that a paired test cannot tell from the cutoff go on. Candidate 1 is worse than 0 by
// 1.0 ± 0.03 and stops; 2 is worse by 2 on average, but not by every seed.
func TestPairedStop(t *testing.T) {
	v := func(list ...float64) (values []Value) {
		for _, x := range list {
			values = append(values, Value{x, 0})
		}
		return values
	}
	h := Halving{Rungs: []int{1, 2}, Eta: 3, Width: 3}
	_, reached := decide(t, h, [][]Value{v(10, 12, 14), v(11, 13.05, 15), v(18, 10, 14)})
	if fmt.Sprint(reached) != "[1 0 1]" {
		t.Error(reached)
	}
}

func TestDecideFails(t *testing.T) {
	failed := errors.New("no memory")
	h := Halving{Rungs: []int{1, 2}, Eta: 2, Width: 2}
	_, err := h.Decide(context.Background(), 4, func(c, epochs int) func() ([]Value, error) {
		return func() ([]Value, error) {
			if c == 1 {
				return nil, failed
			}
			return alone(float64(c))[0], nil
		}
	})
	if !errors.Is(err, failed) {
		t.Error(err)
	}
}

// Of 27 candidates in any order, as many train to each rung as ASHA's rule says at least, and the best one to the end.
func TestBudget(t *testing.T) {
	for width := range 5 {
		values := alone()
		for i := range 27 {
			values = append(values, alone(float64(i*10%27))...)
		}
		_, reached := decide(t, Halving{Rungs: []int{1, 3, 9, 27}, Eta: 3, Width: 3*width + 1}, values)
		count := make([]int, 4)
		for _, r := range reached {
			for k := range r + 1 {
				count[k]++
			}
		}
		if count[0] != 27 || count[1] < 9 || count[1] > 18 || count[2] < 3 || count[3] < 1 || slices.Max(reached) != 3 ||
			reached[0] != 3 {
			t.Errorf("width %d: %v, %v", 3*width+1, count, reached)
		}
	}
}
