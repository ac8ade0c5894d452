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
	strangers = 64               // the most connections that have not yet identified themselves as ranks
	patience  = 10 * time.Second // the time they get for it
)

func (o *Options) patience() time.Duration {
	if o.Patience > 0 {
		return o.Patience
	}
	return patience
}

// door accepts the ranks' connections. It drops connections that do not identify themselves, the oldest first: a real
// rank tries again.
type door struct {
	net.Listener
	mu    sync.Mutex
	there []net.Conn // oldest first
}

// accept passes each connection to f until the listener is closed. It retries after other errors, such as too few
// descriptors.
func (d *door) accept(f func(net.Conn)) {
	for {
		c, err := d.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(50 * time.Millisecond) // gives the rank being greeted time to finish
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

// drop closes the oldest connection if there are more than most.
func (d *door) drop(most int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.there) > most {
		d.there[0].Close()
		d.there = d.there[1:]
	}
}

// leave removes a connection from the list and reports whether it was still there.
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
		place := "port"
		if o.Network == "unix" {
			place = "folder, of a short name, by TMPDIR"
		}
		return nil, fmt.Errorf("rank 0 cannot listen at %s: %w: choose another %s, or is there another rank 0", at, err, place)
	}
	return l, nil
}

// ownHost is the host to listen at for ranks that connect to host: normally host itself. A name that resolves to the
// loopback device here, as a host's own name does on Debian, resolves to another address on other machines; then it
// listens on all addresses.
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
