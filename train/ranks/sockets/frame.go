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

// kind is what a frame is for.
type kind uint8

const (
	hello     kind = iota + 1 // a rank's greeting; back from rank 0's process once all are there
	refuse                    // of a rank: why
	sum32                     // operations, and their results
	max32                     //
	sum64                     //
	max64                     //
	spread                    // a broadcast
	gather                    //
	bye                       // the end
	waiting                   // a rank waits in vain; back: those that don't
	abort                     // all are to end
	lost                      // a rank has ended, or none, and the ranks disagree
	challenge                 // rank 0's process to who has connected: a nonce to prove the key with
	admit                     // the same to a rank that has proved it, with a proof of its own
)

func (k kind) String() string {
	return [...]string{"?", "hello", "refusal", "sum in float32", "maximum in float32", "sum in float64",
		"maximum in float64", "broadcast", "gather", "end", "wait", "abort", "loss", "challenge", "admission"}[k]
}

// operation says whether a kind is one in which all ranks take part.
func (k kind) operation() bool { return k >= sum32 && k <= bye }

// head is a frame's header.
type head struct {
	kind kind
	n    uint32 // of a broadcast: the rank it comes from; else of the sender's choice
	size uint64 // of the data
}

// frame is what goes over a socket: a header of 16 bytes and data.
type frame struct {
	kind kind
	n    uint32
	data []byte
}

// magic tells ranks from what else may connect, and one version of this protocol from others.
const magic = 0x616e72

const (
	short  = 1 << 12 // the most bytes of a frame that is no operation
	ahead  = 1 << 30 // the most bytes of a rank's operations that rank 0 has not begun
	growth = 1 << 20 // the memory that data take whose size only their sender knows, before they come
)

var errNoRank = errors.New("what came is of no rank of this program")

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

// body reads the data of a frame, of which there may be so many bytes.
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

// readShort reads a frame that is no operation.
func readShort(r io.Reader) (frame, error) {
	h, err := readHead(r)
	if err != nil {
		return frame{}, err
	}
	return h.body(r, short)
}

// raw is the bytes of numbers.
func raw[T float32 | float64](x []T) []byte {
	if len(x) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), len(x)*int(unsafe.Sizeof(x[0])))
}

// numbers is bytes as numbers: those of a frame, which are aligned.
func numbers[T float32 | float64](b []byte) []T {
	var one T
	if len(b) == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), len(b)/int(unsafe.Sizeof(one)))
}

// combine adds b to a, or takes the larger elements. What is no number stays none.
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
