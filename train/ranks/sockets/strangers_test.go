package sockets_test

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"onlinerna/train/ranks"
	"onlinerna/train/ranks/sockets"
)

// pair makes the options of two ranks that meet over tcp.
func pair(t *testing.T) (o sockets.Options, l net.Listener) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return sockets.Options{Network: "tcp", Address: l.Addr().String(), Size: 2, Key: "secret", Name: "sockets",
		Timeout: 10 * time.Second,
		Lost:    func(error, bool) {}}, l
}

// first opens rank 0 with a listener.
func first(o sockets.Options, l net.Listener) (chan ranks.Engine, chan error) {
	engine, failed := make(chan ranks.Engine, 1), make(chan error, 1)
	go func() {
		e, err := sockets.OpenWith(o, func() (net.Listener, error) { return l, nil })
		engine <- e
		failed <- err
	}()
	return engine, failed
}

// second opens rank 1, and both sum 1.
func second(t *testing.T, o sockets.Options, engine chan ranks.Engine, failed chan error) {
	t.Helper()
	o.Rank = 1
	other, err := sockets.Open(o)
	e := <-engine
	if err := errors.Join(err, <-failed); err != nil {
		t.Fatal(err)
	}
	x, y := []float64{1}, []float64{2}
	a, b := e.Reduce64(x, ranks.Sum), other.Reduce64(y, ranks.Sum)
	if err := errors.Join(a.Wait(5*time.Second), b.Wait(5*time.Second)); err != nil || x[0] != 3 || y[0] != 3 {
		t.Fatalf("%v, %v, %v", x, y, err)
	}
	go e.Close()
	if err := other.Close(); err != nil {
		t.Error(err)
	}
}

// Silent or slow connections keep no rank out.
func TestIdleStrangers(t *testing.T) {
	o, l := pair(t)
	o.Patience = 300 * time.Millisecond
	idle := func(n int) (all []net.Conn) {
		for range n {
			c, err := net.Dial("tcp", o.Address)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			all = append(all, c)
		}
		return all
	}
	idle(200) // before rank 0 itself connects
	engine, failed := first(o, l)
	all := idle(1)
	all[0].SetReadDeadline(time.Now().Add(5 * time.Second))
	n, err := all[0].Read(make([]byte, 1<<10))
	for err == nil {
		_, err = all[0].Read(make([]byte, 1<<10))
	}
	if n == 0 || errors.Is(err, syscall.ETIMEDOUT) || strings.Contains(err.Error(), "timeout") {
		t.Errorf("an idle connection: %d bytes, %v: want a challenge, then the end", n, err)
	}
	idle(200)
	second(t, o, engine, failed)
}

// scarce is a listener that sometimes fails, as with too few descriptors, and recovers.
type scarce struct {
	net.Listener
	fail int
}

func (s *scarce) Accept() (net.Conn, error) {
	if s.fail++; s.fail%3 != 0 {
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
	return s.Listener.Accept()
}

func TestScarceDescriptors(t *testing.T) {
	o, l := pair(t)
	engine, failed := first(o, &scarce{Listener: l})
	second(t, o, engine, failed)
}

// False greetings are refused and do not end a job that has a key.
func TestFalseGreetings(t *testing.T) {
	o, l := pair(t)
	engine, failed := first(o, l)
	for _, change := range []func(*sockets.Options){
		func(o *sockets.Options) { o.Key = "other" },
		func(o *sockets.Options) { o.Key, o.Size = "", 7 },
		func(o *sockets.Options) { o.Key, o.Rank = "", 0 },
		func(o *sockets.Options) { o.Job = "another" },
	} {
		false := o
		false.Rank = 1
		change(&false)
		if err := sockets.Come(false); err == nil ||
			!strings.Contains(err.Error(), "has another key than rank 0, or is of another job") {
			t.Errorf("a false greeting: %v", err)
		}
	}
	c, err := net.Dial("tcp", o.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	sockets.Send(c, sockets.Hello, 64<<30) // allocates no memory for it
	second(t, o, engine, failed)
}

// Without a key, a connection with another size is refused, and the real rank still connects.
func TestNoKey(t *testing.T) {
	o, l := pair(t)
	o.Key = ""
	engine, failed := first(o, l)
	false := o
	false.Rank, false.Size = 1, 3
	c, err := sockets.Greet(false)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	second(t, o, engine, failed)
}

// A rank does not follow a rank 0 without the key.
func TestFalseMaster(t *testing.T) {
	o, l := pair(t)
	master := o
	master.Key = "guess"
	engine, failed := first(master, l)
	o.Rank = 1
	if _, err := sockets.Open(o); err == nil {
		t.Error("a rank works with another job's master")
	}
	l.Close()
	go func() { <-engine; <-failed }()
}

// An operation is no larger than rank 0's, and a claimed size alone allocates no memory.
func TestFramesOfRanks(t *testing.T) {
	for name, c := range map[string]struct {
		kind uint8
		size uint64
		want string
		sum  bool // rank 0 is at a sum of one number
	}{
		"an unasked greeting": {sockets.Hello, 0, "nothing asked for it", false},
		"a long sum": {sockets.Sum64, 64 << 30,
			"rank 0 is at a sum in float64 of 8 bytes, rank 1 at a sum in float64 of 68719476736", true},
		"no kind": {99, 0, "of no rank of this program", false},
	} {
		o, l := pair(t)
		lost := make(chan error, 1)
		o.Lost = func(err error, _ bool) { lost <- err }
		engine, failed := first(o, l)
		rank := o
		rank.Rank = 1
		conn, err := sockets.Greet(rank)
		e := <-engine
		if err := errors.Join(err, <-failed); err != nil {
			t.Fatal(err)
		}
		if c.sum {
			e.Reduce64([]float64{1}, ranks.Sum)
		}
		sockets.Send(conn, c.kind, c.size)
		select {
		case err := <-lost:
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q", name, err, c.want)
			}
		case <-time.After(5 * time.Second):
			t.Errorf("%s: rank 0 goes on", name)
		}
		conn.Close()
	}
}

// An unrequested result is an error of rank 0's process.
func TestUnaskedResult(t *testing.T) {
	for _, asked := range []int{0, 2} {
		o, l := pair(t)
		lost := make(chan error, 1)
		rank := o
		rank.Rank, rank.Lost = 1, func(err error, _ bool) { lost <- err }
		hub := make(chan net.Conn, 1)
		go func() {
			c, err := sockets.Admit(l, rank)
			if err != nil {
				t.Error(err)
			}
			hub <- c
		}()
		e, err := sockets.Open(rank)
		if err != nil {
			t.Fatal(err)
		}
		c := <-hub
		if asked > 0 {
			e.Reduce64(make([]float64, asked), ranks.Sum)
		}
		sockets.Send(c, sockets.Sum64, 8, make([]byte, 8)...)
		select {
		case err := <-lost:
			if !strings.Contains(fmt.Sprint(err), "nothing asked for it") {
				t.Errorf("%d numbers asked for: %v", asked, err)
			}
		case <-time.After(5 * time.Second):
			t.Errorf("%d numbers asked for: the rank goes on", asked)
		}
		c.Close()
	}
}

func TestOwnHost(t *testing.T) {
	lookup := func(host string) ([]string, error) {
		all, ok := map[string][]string{"debian": {"127.0.1.1"}, "node1": {"10.0.0.1"}, "both": {"::1", "10.0.0.1"}}[host]
		if !ok {
			return nil, errors.New("no such host")
		}
		return all, nil
	}
	for host, want := range map[string]string{"localhost": "localhost", "127.0.0.1": "127.0.0.1", "::1": "::1",
		"10.0.0.1": "10.0.0.1",
		"node1":    "node1", "both": "both", "debian": "", "none": "none"} {
		if got := sockets.OwnHost(host, lookup); got != want {
			t.Errorf("%s: %q, want %q", host, got, want)
		}
	}
	for _, c := range []struct{ address, listen, want string }{
		{"127.0.0.1:0", "", "127.0.0.1:"}, {"localhost:0", "", "127.0.0.1:"}, {"192.0.2.1:0", "127.0.0.1", "127.0.0.1:"},
	} {
		l, err := sockets.Listen(sockets.Options{Network: "tcp", Address: c.address, Listen: c.listen})
		if err != nil {
			t.Fatal(err)
		}
		if got := l.Addr().String(); !strings.HasPrefix(got, c.want) {
			t.Errorf("%+v: listens at %s", c, got)
		}
		l.Close()
	}
}
