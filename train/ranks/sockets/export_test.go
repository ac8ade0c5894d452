package sockets

import (
	"encoding/binary"
	"net"
	"time"

	"onlinerna/train/ranks"
)

// Hang closes a rank's socket as its process's end would.
func (e *engine) Hang() error { return e.conn.Close() }

// Come is a rank whose process ends right after its greeting.
func Come(o Options) error {
	c, err := Greet(o)
	if c != nil {
		c.Close()
	}
	return err
}

// Greet returns the connection of an admitted rank.
func Greet(o Options) (net.Conn, error) {
	c, err := dial(o, o.Address, time.Now().Add(o.Timeout))
	if err != nil {
		return nil, err
	}
	return c, introduce(c, c, &o, "gone\x1b[31m")
}

// OpenWith is Open with a listener of the test.
func OpenWith(o Options, listen func() (net.Listener, error)) (ranks.Engine, error) {
	return open(o, func(Options) (net.Listener, error) { return listen() })
}

// Send writes a frame whose header announces size bytes.
func Send(c net.Conn, k uint8, size uint64, data ...byte) error {
	b := binary.LittleEndian.AppendUint32(nil, uint32(k)|magic<<8)
	b = binary.LittleEndian.AppendUint32(b, 0)
	b = binary.LittleEndian.AppendUint64(b, size)
	_, err := c.Write(append(b, data...))
	return err
}

// Kinds of frames, and the function that chooses the host to listen on.
const (
	Hello = uint8(hello)
	Sum64 = uint8(sum64)
)

var (
	OwnHost = ownHost
	Listen  = listen
)

// Admit admits a rank as rank 0's process does and reports that all are there.
func Admit(l net.Listener, o Options) (net.Conn, error) {
	c, err := l.Accept()
	if err != nil {
		return nil, err
	}
	d := &door{Listener: l, there: []net.Conn{c}}
	if _, ok := d.greet(c, &o, time.Now().Add(o.Timeout)); !ok {
		return nil, errNoRank
	}
	return c, write(c, frame{kind: hello})
}
