package sockets

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"unsafe"

	"onlinerna/train/ranks"
)

// kind is a frame's purpose.
type kind uint8

const (
	hello     kind = iota + 1 // a rank's greeting; the reply once all ranks are there
	refuse                    // refuses a rank, with the reason
	sum32                     // operations and their results
	max32                     //
	sum64                     //
	max64                     //
	spread                    // a broadcast
	gather                    //
	bye                       // the end
	waiting                   // a rank waits in vain; the reply lists the ranks that don't wait
	abort                     // all are to end
	lost                      // a rank has ended, or the ranks disagree
	challenge                 // rank 0's process to a new connection: a nonce for the proof of the key
	admit                     // the same to a rank that has proved it, with rank 0's own proof
)

func (k kind) String() string {
	return [...]string{"?", "hello", "refusal", "sum in float32", "maximum in float32", "sum in float64",
		"maximum in float64", "broadcast", "gather", "end", "wait", "abort", "loss", "challenge", "admission"}[k]
}

// operation reports whether all ranks take part in a kind.
func (k kind) operation() bool { return k >= sum32 && k <= bye }

// head is a frame's header.
type head struct {
	kind kind
	n    uint32 // the source rank of a broadcast; otherwise chosen by the sender
	size uint64 // of the data
}

// frame is a message on the socket: a header of 16 bytes and data.
type frame struct {
	kind kind
	n    uint32
	data []byte
}

// magic distinguishes ranks from other programs, and this version of the protocol from others.
const magic = 0x616e72

const (
	short  = 1 << 12 // the most bytes of a frame that is not an operation
	ahead  = 1 << 30 // the most bytes of a rank's operations that rank 0 has not started
	growth = 1 << 20 // the most memory allocated ahead for data whose size only the sender claims
)

var errNoRank = errors.New("the message is of no rank of this program")

func write(c net.Conn, f frame) error {
	var head [16]byte
	binary.LittleEndian.PutUint32(head[:], uint32(f.kind)|magic<<8)
	binary.LittleEndian.PutUint32(head[4:], f.n)
	binary.LittleEndian.PutUint64(head[8:], uint64(len(f.data)))
	b := net.Buffers{head[:], f.data}
	_, err := b.WriteTo(c)
	return err
}

func readHead(r io.Reader) (head, error) {
	var b [16]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return head{}, err
	}
	k := binary.LittleEndian.Uint32(b[:])
	h := head{kind(k), binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint64(b[8:])}
	if k>>8 != magic || h.kind < hello || h.kind > admit {
		return h, errNoRank
	}
	return h, nil
}

// body reads a frame's data of at most most bytes.
func (h head) body(r io.Reader, most uint64) (frame, error) {
	f := frame{kind: h.kind, n: h.n}
	if h.size > most {
		return f, fmt.Errorf("a %v of %d bytes: at most %d", h.kind, h.size, most)
	}
	for uint64(len(f.data)) < h.size {
		have := len(f.data)
		more := int(min(h.size-uint64(have), uint64(max(have, growth))))
		f.data = slices.Grow(f.data, more)[:have+more]
		if _, err := io.ReadFull(r, f.data[have:]); err != nil {
			return f, err
		}
	}
	return f, nil
}

// readShort reads a frame that is not an operation.
func readShort(r io.Reader) (frame, error) {
	h, err := readHead(r)
	if err != nil {
		return frame{}, err
	}
	return h.body(r, short)
}

// raw is the numbers' memory as bytes.
func raw[T float32 | float64](x []T) []byte {
	if len(x) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), len(x)*int(unsafe.Sizeof(x[0])))
}

// numbers is the aligned bytes of a frame as numbers.
func numbers[T float32 | float64](b []byte) []T {
	var one T
	if len(b) == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), len(b)/int(unsafe.Sizeof(one)))
}

// combine adds b to a, or takes the larger elements. NaN stays NaN.
func combine[T float32 | float64](a, b []byte, op ranks.Op) {
	x, y := numbers[T](a), numbers[T](b)
	for i, v := range y {
		if op == ranks.Max {
			x[i] = max(x[i], v)
		} else {
			x[i] += v
		}
	}
}
