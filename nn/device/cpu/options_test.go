package cpu

import (
	"runtime"
	"testing"
	"time"
)

func TestCloseEndsWorkers(t *testing.T) {
	before := runtime.NumGoroutine()
	d, err := New(Options{Threads: 7})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before; {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
		time.Sleep(time.Millisecond)
	}
}

func TestOptions(t *testing.T) {
	if _, err := New(Options{Threads: -1}); err == nil {
		t.Error("-1 threads must be an error")
	}
	if d := open(t, 0); d.pool.Workers() != runtime.GOMAXPROCS(0) {
		t.Errorf("%d workers by default, want %d", d.pool.Workers(), runtime.GOMAXPROCS(0))
	}
}
