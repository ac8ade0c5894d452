//go:build gpu && cgo

// Package nccl sums and copies between the GPUs of several processes with NCCL; each process has one GPU. It uses NCCL
// and, for memory and streams, package driver.
package nccl

// #cgo CFLAGS: -I${SRCDIR}/../include
// #include <nccl.h>
// #include <stdint.h>
//
// static ncclResult_t join(ncclComm_t *comm, int size, const void *id, int rank) {
//	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
//	config.blocking = 1;
//	return ncclCommInitRankConfig(comm, size, *(const ncclUniqueId *)id, rank, &config);
// }
// static ncclResult_t allReduce(uintptr_t x, size_t n, ncclDataType_t t, ncclRedOp_t op, ncclComm_t c, CUstream s) {
//	return ncclAllReduce((void *)x, (void *)x, n, t, op, c, s);
//
//	}
// static ncclResult_t allGather(uintptr_t own, uintptr_t all, size_t n, ncclDataType_t t, ncclComm_t c, CUstream s) {
//	return ncclAllGather((void *)own, (void *)all, n, t, c, s);
//
//	}
// static ncclResult_t broadcast(uintptr_t x, size_t n, ncclDataType_t t, int root, ncclComm_t c, CUstream s) {
//	return ncclBroadcast((void *)x, (void *)x, n, t, root, c, s);
//
//	}
// static ncclResult_t sendTo(uintptr_t x, size_t n, ncclDataType_t t, int peer, ncclComm_t c, CUstream s) {
//	return ncclSend((void *)x, n, t, peer, c, s);
//
//	}
// static ncclResult_t recvFrom(uintptr_t x, size_t n, ncclDataType_t t, int peer, ncclComm_t c, CUstream s) {
//	return ncclRecv((void *)x, n, t, peer, c, s);
//
//	}
import "C"

import (
	"fmt"
	"sync"
	"time"
	"unsafe"

	"onlinerna/cuda/driver"
	"onlinerna/cuda/lazy"
)

// oldest is the oldest NCCL version that works.
const oldest = 21800

// Type is a type of elements.
type Type int

// The types.
const (
	Int64    Type = C.ncclInt64
	Float16  Type = C.ncclFloat16
	Float32  Type = C.ncclFloat32
	Float64  Type = C.ncclFloat64
	BFloat16 Type = C.ncclBfloat16
)

// Bytes is the size of an element.
func (t Type) Bytes() int64 {
	switch t {
	case Int64, Float64:
		return 8
	case Float32:
		return 4
	}
	return 2
}

// Op combines elements of the ranks.
type Op int

// The operations.
const (
	Sum Op = C.ncclSum
	Max Op = C.ncclMax
)

// ID names a communicator: one rank makes it and sends it to the others.
type ID [128]byte

// load loads NCCL, checks that it is new enough and returns its version.
func load() (version int, err error) {
	if err := lazy.NCCL.Load(); err != nil {
		return 0, err
	}
	var v C.int
	if err := failure("ncclGetVersion", C.ncclGetVersion(&v), nil); err != nil {
		return 0, err
	}
	if v < oldest {
		return 0, fmt.Errorf("cuda: NCCL %s is too old, needed is %s or newer: %s; %s", versionString(int(v)),
			versionString(oldest), lazy.NCCL.File(),
			lazy.NCCL.Install(lazy.DriverVersion()))
	}
	return int(v), nil
}

// NewID makes an ID. A missing NCCL is a [*lazy.NotFoundError].
func NewID() (ID, error) {
	var id ID
	_, err := load()
	if err == nil {
		err = failure("ncclGetUniqueId", C.ncclGetUniqueId((*C.ncclUniqueId)(unsafe.Pointer(&id))), nil)
	}
	return id, err
}

// Version loads NCCL and returns its version.
func Version() (string, error) {
	v, err := load()
	if err != nil {
		return "", err
	}
	return versionString(v), nil
}

// versionString writes 22703 as 2.27.3.
func versionString(v int) string { return fmt.Sprintf("%d.%d.%d", v/10000, v%10000/100, v%100) }

// A Comm is this process's end of a communicator. Its operations run on streams like kernels. All ranks must issue them
// in the same order with equal sizes; a rank that omits one makes the others' streams hang. A capture records them.
type Comm struct {
	*driver.Resource
	c          *driver.Context
	rank, size int

	mu   sync.Mutex // guards h: any goroutine may call Failed and Abort
	h    C.ncclComm_t
	gone bool // closed or aborted
}

// Join joins the communicator with this ID. It returns when all ranks have called it. A missing NCCL is a
// [*lazy.NotFoundError].
func Join(c *driver.Context, id ID, rank, size int) (*Comm, error) {
	if _, err := load(); err != nil {
		return nil, err
	}
	m := &Comm{c: c, rank: rank, size: size}
	err := c.Do(func() error {
		code := m.settle(C.join(&m.h, C.int(size), unsafe.Pointer(&id), C.int(rank)))
		if err := failure(fmt.Sprintf("ncclCommInitRankConfig of rank %d of %d on %v", rank, size, c.Info()), code,
			nil); err != nil {
			return err
		}
		m.Resource = c.Adopt("communicator", m.destroy)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

// settle waits for a call that continues in the background, as all do with NCCL_COMM_BLOCKING=0 in the environment.
func (m *Comm) settle(code C.ncclResult_t) C.ncclResult_t {
	for code == C.ncclInProgress && m.h != nil {
		time.Sleep(100 * time.Microsecond)
		if c := C.ncclCommGetAsyncError(m.h, &code); c != C.ncclSuccess {
			return c
		}
	}
	return code
}

// Rank is this process's number, from 0 to Size-1.
func (m *Comm) Rank() int { return m.rank }

// Size is the number of ranks.
func (m *Comm) Size() int { return m.size }

// call issues one operation on a stream.
func (m *Comm) call(name string, s *driver.Stream, t Type, x driver.Span,
	f func(at C.uintptr_t, n C.size_t, stream C.CUstream) C.ncclResult_t) error {
	return s.Do(func() error {
		if err := m.Check(); err != nil {
			return err
		}
		if x.Bytes()%t.Bytes() != 0 {
			return fmt.Errorf("cuda: %s of %d bytes: elements have %d bytes", name, x.Bytes(), t.Bytes())
		}
		p, err := x.Address(m.c)
		if err != nil {
			return err
		}
		code := m.settle(f(C.uintptr_t(p), C.size_t(x.Bytes()/t.Bytes()), C.CUstream(s.Pointer())))
		if err := failure(fmt.Sprintf("%s of %s", name, driver.Size(x.Bytes())), code, m); err != nil {
			if lost := m.c.Verdict(); lost != nil {
				return lost
			}
			return err
		}
		return nil
	})
}

// AllReduce combines the ranks' x in place.
func (m *Comm) AllReduce(s *driver.Stream, x driver.Span, t Type, op Op) error {
	return m.call("ncclAllReduce", s, t, x, func(at C.uintptr_t, n C.size_t, stream C.CUstream) C.ncclResult_t {
		return C.allReduce(at, n, C.ncclDataType_t(t), C.ncclRedOp_t(op), m.h, stream)
	})
}

// AllGather sets all, which has Size times own's bytes, to the ranks' own, in the order of the ranks.
func (m *Comm) AllGather(s *driver.Stream, all, own driver.Span, t Type) error {
	return m.call("ncclAllGather", s, t, own, func(at C.uintptr_t, n C.size_t, stream C.CUstream) C.ncclResult_t {
		to, err := all.Address(m.c)
		if err != nil || all.Bytes() != int64(m.size)*own.Bytes() {
			return C.ncclInvalidArgument
		}
		return C.allGather(at, C.uintptr_t(to), n, C.ncclDataType_t(t), m.h, stream)
	})
}

// Broadcast copies rank from's x to all ranks' x.
func (m *Comm) Broadcast(s *driver.Stream, x driver.Span, t Type, from int) error {
	return m.call("ncclBroadcast", s, t, x, func(at C.uintptr_t, n C.size_t, stream C.CUstream) C.ncclResult_t {
		return C.broadcast(at, n, C.ncclDataType_t(t), C.int(from), m.h, stream)
	})
}

// Send sends x to a rank that calls Recv. Ranks that do both call it inside a Group.
func (m *Comm) Send(s *driver.Stream, x driver.Span, t Type, to int) error {
	return m.call("ncclSend", s, t, x, func(at C.uintptr_t, n C.size_t, stream C.CUstream) C.ncclResult_t {
		return C.sendTo(at, n, C.ncclDataType_t(t), C.int(to), m.h, stream)
	})
}

// Recv receives x from a rank that calls Send.
func (m *Comm) Recv(s *driver.Stream, x driver.Span, t Type, from int) error {
	return m.call("ncclRecv", s, t, x, func(at C.uintptr_t, n C.size_t, stream C.CUstream) C.ncclResult_t {
		return C.recvFrom(at, n, C.ncclDataType_t(t), C.int(from), m.h, stream)
	})
}

// Group issues the operations that f calls as one, so that they run concurrently.
func (m *Comm) Group(f func() error) error {
	return m.c.Do(func() error {
		if err := failure("ncclGroupStart", C.ncclGroupStart(), m); err != nil {
			return err
		}
		err := f()
		if end := failure("ncclGroupEnd", m.settle(C.ncclGroupEnd()), m); err == nil {
			err = end
		}
		return err
	})
}

// Failed returns an error that occurred in running operations, or nil. Any goroutine may call it, even while another
// waits for a stream.
func (m *Comm) Failed() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.gone {
		return nil
	}
	var code C.ncclResult_t
	if c := C.ncclCommGetAsyncError(m.h, &code); c != C.ncclSuccess {
		code = c
	}
	if code == C.ncclInProgress {
		return nil
	}
	return failure("an operation between GPUs", code, m)
}

// Abort ends running operations, also those that hang; their results are undefined. The communicator cannot be used
// afterwards. Any goroutine may call it.
func (m *Comm) Abort() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.gone {
		return nil
	}
	m.gone = true
	return failure("ncclCommAbort", C.ncclCommAbort(m.h), nil)
}

func (m *Comm) destroy() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.gone {
		return nil
	}
	m.gone = true
	return failure("ncclCommDestroy", C.ncclCommDestroy(m.h), nil)
}

var names = map[C.ncclResult_t]string{
	C.ncclUnhandledCudaError: "ncclUnhandledCudaError", C.ncclSystemError: "ncclSystemError",
	C.ncclInternalError:   "ncclInternalError",
	C.ncclInvalidArgument: "ncclInvalidArgument", C.ncclInvalidUsage: "ncclInvalidUsage",
	C.ncclRemoteError: "ncclRemoteError",
	C.ncclInProgress:  "ncclInProgress",
}

// failure turns a result into an error, with NCCL's own message.
func failure(call string, code C.ncclResult_t, m *Comm) error {
	if code == C.ncclSuccess {
		return nil
	}
	name := names[code]
	if name == "" {
		name = "NCCL error"
	}
	e := &driver.Error{Call: call, Code: int(code), Name: name, Text: C.GoString(C.ncclGetErrorString(code))}
	var h C.ncclComm_t
	if m != nil {
		h = m.h
	}
	if last := C.GoString(C.ncclGetLastError(h)); last != "" {
		e.Text += "; " + last
	}
	return e
}
