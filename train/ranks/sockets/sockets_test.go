package sockets_test

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"onlinerna/train/ranks"
	"onlinerna/train/ranks/rankstest"
	"onlinerna/train/ranks/sockets"
)

// meet connects n ranks, goroutines of this process, and calls f on each. It returns each rank's error and each rank's
// news of lost ranks.
func meet(n int, change func(k int, o *sockets.Options), f func(k int, e ranks.Engine) error) (errs, lost []error) {
	errs, lost = make([]error, n), make([]error, n)
	var all sync.WaitGroup
	for k := range n {
		all.Go(func() {
			told := make(chan bool)
			o := sockets.Options{Rank: k, Size: n, Key: "job", Name: "sockets", Timeout: 10 * time.Second,
				Lost: func(err error, quiet bool) {
					lost[k] = err
					if !quiet {
						lost[k] = fmt.Errorf("said: %w", err)
					}
					close(told)
				}}
			change(k, &o)
			e, err := sockets.Open(o)
			if err == nil {
				if err = f(k, e); errors.Is(err, errAwait) {
					<-told
				}
			}
			errs[k] = err
		})
	}
	all.Wait()
	return errs, lost
}

// errAwait means that a rank waits for the news of a loss.
var errAwait = errors.New("lost")

// file uses a socket in a folder of the test.
func file(t *testing.T) func(int, *sockets.Options) {
	at := filepath.Join(t.TempDir(), "ranks")
	return func(_ int, o *sockets.Options) { o.Network, o.Address = "unix", at }
}

func TestSuite(t *testing.T) {
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	for name, where := range map[string]func(int, *sockets.Options){
		"unix": file(t), "tcp": func(_ int, o *sockets.Options) { o.Network, o.Address = "tcp", address },
	} {
		t.Run(name, func(t *testing.T) {
			for n := 1; n <= 4; n++ {
				errs, lost := meet(n, where, func(k int, e ranks.Engine) error {
					g, err := ranks.Join(e, ranks.Options{Timeout: 10 * time.Second})
					if err != nil {
						return err
					}
					if err := rankstest.Suite(g); err != nil {
						return err
					}
					return g.Close()
				})
				if err := errors.Join(append(errs, lost...)...); err != nil {
					t.Errorf("%d ranks: %v", n, err)
				}
			}
		})
	}
}

// A rank whose socket closes has ended: the others learn it, and one of them reports it.
func TestLost(t *testing.T) {
	for gone := range 3 {
		end := make(chan bool)
		errs, lost := meet(3, file(t), func(k int, e ranks.Engine) error {
			if k == gone {
				<-end
				return e.(interface{ Hang() error }).Hang()
			}
			r := e.Reduce64([]float64{1}, ranks.Sum)
			if k == (gone+1)%3 {
				close(end)
			}
			if err := r.Wait(10 * time.Second); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("rank %d ", gone)) {
				return fmt.Errorf("rank %d has ended: %w", gone, err)
			}
			return errAwait
		})
		said := 0
		for k := range errs {
			if k == gone {
				continue
			}
			if !errors.Is(errs[k], errAwait) || lost[k] == nil {
				t.Errorf("rank %d of %d has ended, rank %d: %v, %v", gone, 3, k, errs[k], lost[k])
			} else if strings.HasPrefix(lost[k].Error(), "said") {
				said++
			}
		}
		if said != 1 {
			t.Errorf("rank %d has ended: %d ranks say so", gone, said)
		}
	}
}

// An address that nothing can listen at is an error that says what to change.
func TestCannotListen(t *testing.T) {
	long := filepath.Join(t.TempDir(), strings.Repeat("long", 50))
	for want, o := range map[string]sockets.Options{
		"TMPDIR":       {Network: "unix", Address: long},
		"another port": {Network: "tcp", Address: "127.0.0.1:99999"},
	} {
		if _, err := sockets.Listen(o); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), o.Address) {
			t.Errorf("%s: %v", o.Network, err)
		}
	}
}

// A rank that ends right after its greeting is lost after all have met: the first sum fails and reports it.
func TestLostAtOnce(t *testing.T) {
	for range 50 {
		where, lost := file(t), make(chan error, 1)
		o := sockets.Options{Size: 2, Key: "job", Name: "sockets", Timeout: 10 * time.Second,
			Lost: func(err error, _ bool) { lost <- err }}
		where(0, &o)
		gone := make(chan error)
		go func() {
			other := o
			other.Rank = 1
			gone <- sockets.Come(other)
		}()
		e, err := sockets.Open(o)
		if err := errors.Join(err, <-gone); err != nil {
			t.Fatal(err)
		}
		if err := e.Reduce64([]float64{1}, ranks.Sum).Wait(10 * time.Second); err == nil ||
			err.Error() != `rank 1 on gone\x1b[31m has ended` {
			t.Fatalf("a rank that has ended at once: %v", err)
		}
		<-lost
	}
}

// Ranks that wait in vain learn which ranks do not.
func TestMissing(t *testing.T) {
	over := make(chan bool)
	var done sync.WaitGroup
	done.Add(2)
	go func() { done.Wait(); close(over) }()
	errs, _ := meet(3, file(t), func(k int, e ranks.Engine) error {
		if k == 1 {
			<-over
			return nil
		}
		defer done.Done()
		if err := e.Reduce64([]float64{1}, ranks.Sum).Wait(50 * time.Millisecond); !errors.Is(err, ranks.ErrTimeout) {
			return fmt.Errorf("a rank is missing: %w", err)
		}
		if list := e.Missing(200 * time.Millisecond); len(list) != 1 || list[0] != 1 {
			return fmt.Errorf("missing: %v", list)
		}
		return nil
	})
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}

// Ranks of different jobs get an error.
func TestBadMeetings(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(k int, o *sockets.Options)
		want   string
		all    bool // all ranks get the error
	}{
		{"another size", func(k int, o *sockets.Options) { o.Size += k }, "is one of 3, rank 0 of 2", true},
		{"a rank beyond", func(k int, o *sockets.Options) { o.Rank = 2 * k }, "there are 2", true},
		{"a rank too few", func(k int, o *sockets.Options) { o.Size = 3; o.Timeout = 300 * time.Millisecond },
			"missing: rank 2", true},
		{"another job", func(k int, o *sockets.Options) { o.Key = fmt.Sprint(k); o.Timeout = 300 * time.Millisecond },
			"missing: rank 1", false},
		{"no rank 0", func(k int, o *sockets.Options) { o.Rank++; o.Timeout = 300 * time.Millisecond },
			"rank 0 is not at", true},
	} {
		where := file(t)
		from := time.Now()
		errs, _ := meet(2, func(k int, o *sockets.Options) { where(k, o); c.change(k, o) },
			func(int, ranks.Engine) error { return nil })
		if errs[0] == nil || errs[1] == nil || !strings.Contains(errors.Join(errs...).Error(), c.want) ||
			time.Since(from) > 5*time.Second {
			t.Errorf("%s: %v, want %q", c.name, errs, c.want)
		}
		for _, err := range errs {
			if c.all && !strings.Contains(fmt.Sprint(err), c.want) {
				t.Errorf("%s: %v, want %q", c.name, err, c.want)
			}
		}
	}
	where := file(t)
	errs, _ := meet(2, func(k int, o *sockets.Options) {
		where(k, o)
		o.Rank = 0
		o.Timeout = 300 * time.Millisecond
	}, func(int, ranks.Engine) error { return nil })
	if !strings.Contains(errors.Join(errs...).Error(), "is there another rank 0") {
		t.Errorf("two masters: %v", errs)
	}
}

// Ranks with different operations get an error.
func TestDisagreement(t *testing.T) {
	errs, lost := meet(2, file(t), func(k int, e ranks.Engine) error {
		err := e.Reduce64(make([]float64, 1+k), ranks.Sum).Wait(10 * time.Second)
		if err == nil || !strings.Contains(err.Error(), "the ranks disagree about the next operation: "+
			"rank 0 is at a sum in float64 of 8 bytes, rank 1 at a sum in float64 of 16") {
			return fmt.Errorf("sums of other lengths: %w", err)
		}
		return errAwait
	})
	for k := range errs {
		if !errors.Is(errs[k], errAwait) || lost[k] == nil {
			t.Errorf("rank %d: %v, %v", k, errs[k], lost[k])
		}
	}
}
