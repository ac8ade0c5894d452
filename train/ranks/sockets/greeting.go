package sockets

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"onlinerna/internal/text"
)

// greeting is a rank's first message.
type greeting struct {
	Rank, Size   int
	Host         string
	Nonce, Proof []byte
}

// proof shows that its maker, "rank" or "hub", knows the key. It is valid for one connection: both sides contribute a
// nonce.
func (o *Options) proof(maker string, nonce []byte, g greeting) []byte {
	m := hmac.New(sha256.New, []byte(o.Key))
	fmt.Fprintf(m, "%s %q %x %x %d %d %q", maker, o.Job, nonce, g.Nonce, g.Rank, g.Size, g.Host)
	return m.Sum(nil)
}

func newNonce() []byte {
	b := make([]byte, 32)
	rand.Read(b) // it never fails
	return b
}

// errTurnedAway means that rank 0 closed the connection before identifying this rank, which may try again.
var errTurnedAway = errors.New("rank 0 closed the connection, or takes this rank for one of another job")

// introduce sends rank 0's process this rank's number and proof, and checks rank 0's proof.
func introduce(c net.Conn, r io.Reader, o *Options, host string) error {
	f, err := readShort(r)
	if err != nil {
		return errors.Join(errTurnedAway, err)
	}
	if f.kind == refuse {
		return errors.New(text.Printable(string(f.data)))
	}
	if f.kind != challenge {
		return errNoRank
	}
	g := greeting{Rank: o.Rank, Size: o.Size, Host: host, Nonce: newNonce()}
	g.Proof = o.proof("rank", f.data, g)
	b, err := json.Marshal(g)
	if err != nil {
		return err
	}
	want := o.proof("hub", f.data, g)
	if err := write(c, frame{kind: hello, data: b}); err != nil {
		return errors.Join(errTurnedAway, err)
	}
	switch f, err = readShort(r); {
	case err != nil:
		return errors.Join(errTurnedAway, err)
	case f.kind == refuse:
		return errors.New(text.Printable(string(f.data)))
	case f.kind != admit:
		return errNoRank
	case !hmac.Equal(f.data, want):
		return fmt.Errorf("the listener at %s does not know the job's key", o.Address)
	}
	return nil
}

// greet identifies a new connection. It closes the connection if that takes too long or if the other side does not know
// the key.
func (d *door) greet(c net.Conn, o *Options, until time.Time) (greeting, bool) {
	if patient := time.Now().Add(o.patience()); patient.Before(until) {
		until = patient
	}
	c.SetDeadline(until)
	nonce := newNonce()
	err := write(c, frame{kind: challenge, data: nonce})
	var f frame
	if err == nil {
		f, err = readShort(c)
	}
	var g greeting
	known := d.leave(c)
	if err != nil || !known || f.kind != hello || json.Unmarshal(f.data, &g) != nil {
		c.Close()
		return g, false
	}
	if !hmac.Equal(g.Proof, o.proof("rank", nonce, g)) {
		say(c, frame{kind: refuse, data: fmt.Appendf(nil, "rank %d has another key than rank 0, or is of another job",
			g.Rank)})
		c.Close()
		return g, false
	}
	if say(c, frame{kind: admit, data: o.proof("hub", nonce, g)}) != nil {
		c.Close()
		return g, false
	}
	c.SetDeadline(time.Time{})
	g.Host = text.Printable(g.Host)
	return g, true
}

// say writes a frame to a peer that may not read it.
func say(c net.Conn, f frame) error {
	c.SetWriteDeadline(time.Now().Add(5 * time.Second))
	err := write(c, f)
	c.SetWriteDeadline(time.Time{})
	return err
}
