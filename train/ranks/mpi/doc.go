// Package mpi is a [ranks.Engine] over the MPI library of the machine: Open MPI, MPICH and what has MPICH's binary interface (Intel's, MVAPICH,
// Cray's), or a library with the standard interface of MPI 5. The library is loaded when the program runs, without cgo, so one binary serves them all.
//
// It takes the build tag mpi, since a binary that loads libraries depends on the system's C library:
//
//	CGO_ENABLED=0 go build -tags mpi ./cmd/rna
//
// Who starts an operation, and who waits for one, calls MPI itself, one goroutine at a time: handing calls to a thread of their own and back
// costs 30 to 80 µs. While nobody waits, a goroutine of the engine tests the operations under way, so that they go on. No call but bench comm's
// plain sum and MPI_Finalize blocks: a rank that waits in vain can still say who is missing.
package mpi

// LibraryVar names the environment variable with the file of the library to load, where it isn't the usual one.
const LibraryVar = "RNA_MPI_LIB"
