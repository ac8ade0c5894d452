package kern

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// Results stay right for goroutines that move between threads, and beside signals and garbage collections.
func TestTilesOnThreads(t *testing.T) {
	if testing.Short() {
		t.Skip("an emulated processor is too slow to move goroutines")
	}
	tileKernels(t, func(t *testing.T, k *Tiles) {
		const goroutines = 6
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
		var stop atomic.Bool
		var moves, calls, signals, latest atomic.Int64
		var running sync.WaitGroup
		for g := range goroutines {
			x := newTileCase(t, TileRows-g, 2*TileWidth-g, 3, 40)
			x.fill(tileKinds(rand.New(rand.NewPCG(uint64(g), 1)))[0].f)
			want := x.by(t, PlainTiles())
			got := make([]float32, len(want))
			args := x.args
			args.C = &got[0]
			running.Go(func() {
				for thread := 0; !stop.Load(); runtime.Gosched() {
					if now := syscall.Gettid(); now != thread {
						moves.Add(1)
						thread = now
					}
					latest.Store(int64(thread))
					copy(got, x.c)
					k.Products[2](&args)
					calls.Add(1)
					if n := differences(got, want); n > 0 {
						t.Errorf("goroutine %d: %d of %d elements differ", g, n, len(want))
						return
					}
				}
			})
		}
		for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); {
			runtime.GC()
			for range 200 {
				// Go's runtime takes SIGURG as a request to preempt.
				if syscall.Tgkill(syscall.Getpid(), int(latest.Load()), syscall.SIGURG) == nil {
					signals.Add(1)
				}
			}
		}
		stop.Store(true)
		running.Wait()
		t.Logf("%d calls, %d moves to another thread, %d signals", calls.Load(), moves.Load(), signals.Load())
		if moves.Load() < 2*goroutines || signals.Load() == 0 {
			t.Errorf("goroutines moved %d times; their threads got %d signals", moves.Load(), signals.Load())
		}
	})
}
