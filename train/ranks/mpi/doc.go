// Package mpi is a [ranks.Engine] over the machine's MPI library: Open MPI, MPICH and libraries with MPICH's binary
// interface (Intel's, MVAPICH, Cray's), or a library with the standard interface of MPI 5. The library is loaded at run
// time without cgo, so one binary serves them all.
//
// It takes the build tag mpi, since a binary that loads libraries depends on the system's C library:
//
//	CGO_ENABLED=0 go build -tags mpi ./cmd/rna
//
// The goroutine that starts an operation or waits for one calls MPI itself, one goroutine at a time: passing calls to a
// dedicated thread and back costs 30 to 80 µs. While nobody waits, a goroutine of the engine tests the running
// operations to keep them progressing. Only the plain sum of bench comm and MPI_Finalize block, so a rank that waits in
// vain can still report the missing ranks.
package mpi

// LibraryVar names the environment variable with the library's file, for unusual locations.
const LibraryVar = "RNA_MPI_LIB"
