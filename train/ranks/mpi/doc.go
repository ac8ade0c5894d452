// Package mpi is a [ranks.Engine] over the MPI library of the machine: Open MPI, MPICH and what has MPICH's binary interface (Intel's, MVAPICH,
// Cray's), or a library with the standard interface of MPI 5. The library is loaded when the program runs, without cgo, so one binary serves them all.
//
// It takes the build tag mpi, since a binary that loads libraries depends on the system's C library:
//
//	CGO_ENABLED=0 go build -tags mpi ./cmd/rna
//
// All calls of MPI come from one thread, which tests the operations under way in turn: it spins while somebody waits for one, and sleeps for a while
// between tests when nobody does.
package mpi

// LibraryVar names the environment variable with the file of the library to load, where it isn't the usual one.
const LibraryVar = "RNA_MPI_LIB"
