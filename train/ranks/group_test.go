package ranks_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"onlinerna/train/ranks"
	"onlinerna/train/ranks/rankstest"
)

func TestSuite(t *testing.T) {
	for n := 1; n <= 4; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) { rankstest.Run(t, n, time.Minute, rankstest.Suite) })
	}
}

// A single process needs no engine.
func TestSingle(t *testing.T) {
	var g *ranks.Group
	x := []float32{1, 2}
	mine := errors.New("mine")
	any, err := g.Any(true)
	all, err2 := g.Gather([]byte("x"))
	part := make([]byte, 1)
	for _, err := range []error{err, err2, g.Sum32(x).Wait(), g.Sum64(nil).Wait(), g.Max64([]float64{1}),
		g.Broadcast(nil, 0), g.Share(&x),
		g.GatherParts(part, []byte{7}), g.Compare(ranks.Fact{Name: "a", Value: "b"}), g.Together(nil), g.Close()} {
		if err != nil {
			t.Error(err)
		}
	}
	g.At(ranks.At{Step: 1})
	g.Abort(mine)
	if !any || len(all) != 1 || string(all[0]) != "x" || part[0] != 7 || x[0] != 1 || g.Together(mine) != mine ||
		g.Rank() != 0 || g.Size() != 1 || !g.First() || !g.Single() || g.Nodes() != 1 || g.Locals() != 1 || g.Engine() != "" {
		t.Error("a single process is no group of one")
	}
	n := testing.AllocsPerRun(10, func() {
		g.At(ranks.At{Step: 1})
		if err := g.Sum32(x).Wait(); err != nil {
			t.Error(err)
		}
	})
	if n != 0 {
		t.Errorf("%g allocations", n)
	}
}

// TestThreads checks that as many threads compute, and decode images, as Go uses.
func TestThreads(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var g *ranks.Group
	if g.Threads() != 1 || g.Workers() != 1 {
		t.Errorf("%d threads, %d workers, want one", g.Threads(), g.Workers())
	}
}

func TestTimeout(t *testing.T) {
	errs := rankstest.Errors(t, 3, 200*time.Millisecond, func(g *ranks.Group) error {
		g.At(ranks.At{Epoch: 2, Step: 17})
		if g.Rank() == 1 {
			return nil
		}
		return g.Barrier()
	})
	var e *ranks.TimeoutError
	if errs[1] != nil || !errors.As(errs[0], &e) || !errors.Is(errs[2], ranks.ErrTimeout) {
		t.Fatal(errs)
	}
	if len(e.Missing) != 1 || !strings.HasPrefix(e.Missing[0], "rank 1 on ") ||
		!strings.Contains(e.Error(), "epoch 2, step 17") {
		t.Error(e)
	}
}

func TestLauncherDisagrees(t *testing.T) {
	rankstest.Run(t, 2, time.Minute, func(g *ranks.Group) error {
		e := single{}
		_, err := ranks.Join(e, ranks.Options{World: ranks.World{Launcher: "srun", Size: 4}})
		if err == nil || !strings.Contains(err.Error(), "srun started 4 ranks, lib knows of 1") {
			return fmt.Errorf("error %v", err)
		}
		return nil
	})
}

type single struct{ ranks.Engine }

func (single) Name() string { return "lib" }
func (single) Size() int    { return 1 }
