package sockets

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"
)

const (
	strangers = 64               // the most connections of who has not yet said that it is a rank
	patience  = 10 * time.Second // for it to say so
)

func (o *Options) patience() time.Duration {
	if o.Patience > 0 {
		return o.Patience
	}
	return patience
}

// door is where ranks come in. Who does not say that it is a rank is dropped, the oldest first: a rank tries again.
type door struct {
	net.Listener
	mu    sync.Mutex
	there []net.Conn // oldest first
}

// accept hands each connection to f, until the listener is closed. Other errors, as for want of descriptors, pass.
func (d *door) accept(f func(net.Conn)) {
	for {
		c, err := d.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(50 * time.Millisecond) // for a rank that is greeted just now
			d.drop(0)
			continue
		}
		d.mu.Lock()
		d.there = append(d.there, c)
		d.mu.Unlock()
		d.drop(strangers)
		go f(c)
	}
}

// drop closes the oldest connection if there are more than so many.
func (d *door) drop(most int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.there) > most {
		d.there[0].Close()
		d.there = d.there[1:]
	}
}

// leave takes a connection off the list, and says whether it was still there.
func (d *door) leave(c net.Conn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	k := slices.Index(d.there, c)
	if k >= 0 {
		d.there = slices.Delete(d.there, k, k+1)
	}
	return k >= 0
}

// listen listens at the ranks' address.
func listen(o Options) (net.Listener, error) {
	at := o.Address
	if o.Network == "tcp" {
		host, port, err := net.SplitHostPort(at)
		if err != nil {
			return nil, fmt.Errorf("the ranks' address %s: want host:port: %w", at, err)
		}
		if o.Listen != "" {
			host = o.Listen
		} else {
			host = ownHost(host, net.LookupHost)
		}
		at = net.JoinHostPort(host, port)
	}
	l, err := net.Listen(o.Network, at)
	if err != nil {
		return nil, fmt.Errorf("rank 0 cannot listen at %s: %w: choose another port, or is there another rank 0", at, err)
	}
	return l, nil
}

// ownHost is the host to listen at for ranks that connect to a host: that one. A name that means the loopback device
// here, as a host's own name does on Debian, means another address on other machines, so it is all of the host's.
func ownHost(host string, lookup func(string) ([]string, error)) string {
	if host == "localhost" || net.ParseIP(host) != nil {
		return host
	}
	all, err := lookup(host)
	if err != nil || len(all) == 0 {
		return host
	}
	for _, a := range all {
		if ip := net.ParseIP(a); ip == nil || !ip.IsLoopback() {
			return host
		}
	}
	return ""
}
