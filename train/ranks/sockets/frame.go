package sockets

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"unsafe"

	"onlinerna/train/ranks"
)

// kind is what a frame is for.
type kind uint8

const (
	hello   kind = iota + 1 // of a rank: its number, how many there are, its host; back from rank 0's process once all are there
	refuse                  // of a rank: why
	sum32                   // operations, and their results
	max32                   //
	sum64                   //
	max64                   //
	spread                  // a broadcast
	gather                  //
	bye                     // the end
	waiting                 // a rank waits in vain; back: those that don't
	abort                   // all are to end
	lost                    // a rank has ended, or none, and the ranks disagree
)

func (k kind) String() string {
	return [...]string{"?", "hello", "refusal", "sum in float32", "maximum in float32", "sum in float64", "maximum in float64", "broadcast", "gather", "end", "wait",
		"abort", "loss"}[k]
}

// frame is what goes over a socket: a header of 16 bytes and data.
type frame struct {
	kind kind
	n    uint32 // of a broadcast: the rank it comes from; else of the sender's choice
	data []byte
}

// magic tells ranks from what else may connect, and one version of this protocol from others.
const magic = 0x616e72

// The most bytes that a frame may hold: of a rank, and of who has not yet said that it is one.
const (
	longest  = 1 << 36
	stranger = 1 << 12
)

func write(c net.Conn, f frame) error {
	var head [16]byte
	binary.LittleEndian.PutUint32(head[:], uint32(f.kind)|magic<<8)
	binary.LittleEndian.PutUint32(head[4:], f.n)
	binary.LittleEndian.PutUint64(head[8:], uint64(len(f.data)))
	b := net.Buffers{head[:], f.data}
	_, err := b.WriteTo(c)
	return err
}

func read(r io.Reader, most uint64) (frame, error) {
	var head [16]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return frame{}, err
	}
	k, n := binary.LittleEndian.Uint32(head[:]), binary.LittleEndian.Uint64(head[8:])
	f := frame{kind: kind(k), n: binary.LittleEndian.Uint32(head[4:])}
	if k>>8 != magic || f.kind < hello || f.kind > lost || n > most {
		return f, errors.New("what came is of no rank of this program")
	}
	f.data = make([]byte, n)
	_, err := io.ReadFull(r, f.data)
	return f, err
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
