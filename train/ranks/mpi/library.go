//go:build mpi && linux

package mpi

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/ebitengine/purego"

	"onlinerna/train/ranks"
)

// constants are the handles and numbers of a binary interface (ABI).
type constants struct {
	world                uintptr // MPI_COMM_WORLD
	float, double, bytes uintptr // types
	sum, max             uintptr // operations
	inPlace              uintptr
	statusIgnore         uintptr
	serialized           uintptr // the thread level
	errorsReturn         uintptr // the error handler
}

// mpich has the constants of MPICH's common ABI, standard those of MPI 5.
var (
	mpich = constants{
		world: 0x44000000, float: 0x4c00040a, double: 0x4c00080b, bytes: 0x4c00010d, sum: 0x58000003, max: 0x58000001,
		inPlace: ^uintptr(0), statusIgnore: 1, serialized: 2, errorsReturn: 0x54000001,
	}
	standard = constants{
		world: 0x101, float: 0x210, double: 0x214, bytes: 0x247, sum: 0x21, max: 0x23,
		inPlace: 1, statusIgnore: 0, serialized: 2048, errorsReturn: 0x143,
	}
)

// library is a loaded MPI library. It lies on the heap, where C may write to it.
type library struct {
	constants
	handle uintptr
	file   string
	name   string // with the version
	text   [16384]byte
	number [3]int32

	initThread, finalize, abort, rank, size, setErrors, errorString    uintptr
	iallreduce, ibcast, iallgather, isend, irecv, test, dup, allreduce uintptr
}

// candidates lists the files to try in order.
func candidates(w ranks.World) []string {
	if f := os.Getenv(LibraryVar); f != "" {
		return []string{f}
	}
	open, mpich, abi := []string{"libmpi.so.40"}, []string{"libmpich.so.12", "libmpi.so.12"},
		[]string{"libmpi_abi.so.1", "libmpi_abi.so.0"}
	switch w.Implementation {
	case "openmpi":
		return append(open, abi...)
	case "mpich":
		return append(mpich, abi...)
	}
	return append(append(open, mpich...), abi...)
}

// load loads the launcher's library.
func load(w ranks.World) (*library, error) {
	runtime.LockOSThread() // C keeps the error text per thread
	defer runtime.UnlockOSThread()
	var errs []error
	for _, file := range candidates(w) {
		h, err := purego.Dlopen(file, purego.RTLD_NOW|purego.RTLD_GLOBAL)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		l := &library{handle: h, file: file}
		if err := errors.Join(l.bind(), l.tune()); err != nil {
			return nil, fmt.Errorf("MPI library %s: %w", file, err)
		}
		return l, nil
	}
	install := "install openmpi-bin or mpich, the one whose mpirun starts the ranks"
	switch w.Implementation {
	case "openmpi":
		install = "install openmpi-bin (it brings libmpi.so.40)"
	case "mpich":
		install = "install mpich (it brings libmpich.so.12 or libmpi.so.12)"
	}
	return nil, fmt.Errorf("no MPI library can be loaded: %s, or name the file in %s: %w", install, LibraryVar,
		errors.Join(errs...))
}

// bind looks up the functions and the constants.
func (l *library) bind() error {
	for name, f := range map[string]*uintptr{
		"MPI_Init_thread": &l.initThread, "MPI_Finalize": &l.finalize, "MPI_Abort": &l.abort,
		"MPI_Comm_rank": &l.rank, "MPI_Comm_size": &l.size,
		"MPI_Comm_set_errhandler": &l.setErrors, "MPI_Error_string": &l.errorString,
		"MPI_Iallreduce": &l.iallreduce, "MPI_Ibcast": &l.ibcast,
		"MPI_Iallgather": &l.iallgather, "MPI_Isend": &l.isend, "MPI_Irecv": &l.irecv, "MPI_Test": &l.test,
		"MPI_Comm_dup": &l.dup, "MPI_Allreduce": &l.allreduce,
	} {
		p, err := purego.Dlsym(l.handle, name)
		if err != nil {
			return err
		}
		*f = p
	}
	version, err := purego.Dlsym(l.handle, "MPI_Get_library_version")
	if err != nil {
		return err
	}
	purego.SyscallN(version, pointer(l.text[:]), pointer(l.number[:]))
	l.name = shortName(string(bytes.TrimRight(l.text[:l.number[0]], "\x00")))
	_, notOpen := purego.Dlsym(l.handle, "ompi_mpi_comm_world")
	switch {
	case strings.Contains(l.file, "mpi_abi"):
		l.constants = standard
		return nil
	case notOpen != nil:
		l.constants = mpich
		return nil
	}
	l.constants = constants{inPlace: 1, statusIgnore: 0, serialized: 2}
	for name, h := range map[string]*uintptr{
		"ompi_mpi_comm_world": &l.world, "ompi_mpi_float": &l.float, "ompi_mpi_double": &l.double, "ompi_mpi_byte": &l.bytes,
		"ompi_mpi_op_sum": &l.sum, "ompi_mpi_op_max": &l.max, "ompi_mpi_errors_return": &l.errorsReturn,
	} {
		p, err := purego.Dlsym(l.handle, name)
		if err != nil {
			return err
		}
		*h = p
	}
	return nil
}

// openSums makes Open MPI's MPI_Iallreduce sum one part of the vector on each rank and then gather the parts. By
// default its in-place sums send whole vectors to one rank and back: twice the necessary data for two ranks, more for
// more.
const openSums = "OMPI_MCA_coll_libnbc_iallreduce_algorithm"

// tune sets defaults that Open MPI reads from the environment at its start. It sets C's environment, because Go's copy
// is separate.
func (l *library) tune() error {
	if !strings.HasPrefix(l.name, "Open MPI") || strings.HasPrefix(l.name, "Open MPI v4.0") {
		return nil
	}
	set, err := purego.Dlsym(purego.RTLD_DEFAULT, "setenv")
	if err != nil {
		return err
	}
	name, value := append([]byte(openSums), 0), []byte("3\x00")
	purego.SyscallN(set, pointer(name), pointer(value), 0)
	runtime.KeepAlive(name)
	runtime.KeepAlive(value)
	return nil
}

// shortName is the library's name and version, the first words of its version string.
func shortName(s string) string {
	if v, ok := strings.CutPrefix(s, "MPICH Version:"); ok {
		f := strings.Fields(v)
		return "MPICH " + f[0]
	}
	s, _, _ = strings.Cut(s, "\n")
	s, _, _ = strings.Cut(s, ",")
	s, _, _ = strings.Cut(s, " for ")
	return strings.TrimSpace(s)
}

// failed is the error of a call, or nil.
func (l *library) failed(call string, rc uintptr) error {
	if int32(rc) == 0 {
		return nil
	}
	purego.SyscallN(l.errorString, rc, pointer(l.text[:]), pointer(l.number[:]))
	return fmt.Errorf("%s: %s", call, l.text[:l.number[0]])
}
