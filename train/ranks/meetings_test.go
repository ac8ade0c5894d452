package ranks_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"onlinerna/train/ranks"
	"onlinerna/train/ranks/rankstest"
)

// Rank 0 writes the output of all batches in order, for any number of ranks and batches.
func TestMeetings(t *testing.T) {
	for _, n := range []int{1, 2, 3} {
		for _, batches := range []int{0, 1, 2, 47, 48, 49, 100} {
			var got []string
			rankstest.Run(t, n, time.Minute, func(g *ranks.Group) error {
				var write func([]byte) error
				if g.First() {
					write = func(b []byte) error { got = append(got, string(b)); return nil }
				}
				m := ranks.NewMeetings(g, batches, func() bool { return false }, write)
				for b := g.Rank(); b < batches; b += n {
					if err := m.Before(b); err != nil {
						return err
					}
					if g.Single() {
						got = append(got, fmt.Sprint(b))
					} else {
						m.Give(b, []byte(fmt.Sprint(b)))
					}
				}
				return m.Rest()
			})
			var want []string
			for b := range batches {
				want = append(want, fmt.Sprint(b))
			}
			if !slices.Equal(got, want) {
				t.Errorf("%d ranks, %d batches: %v", n, batches, got)
			}
		}
	}
}

// One rank's stop makes all ranks stop before the same batches.
func TestMeetingsStop(t *testing.T) {
	done := make([]int, 3)
	for k, err := range rankstest.Errors(t, 3, time.Minute, func(g *ranks.Group) error {
		own := &done[g.Rank()]
		m := ranks.NewMeetings(g, 300, func() bool { return g.Rank() == 2 && *own >= 20 }, nil)
		for b := g.Rank(); b < 300; b += 3 {
			if err := m.Before(b); err != nil {
				return err
			}
			*own++
		}
		return m.Rest()
	}) {
		if !errors.Is(err, ranks.ErrStop) || done[k] != 32 {
			t.Errorf("rank %d: %v after %d batches, want 32", k, err, done[k])
		}
	}
}
