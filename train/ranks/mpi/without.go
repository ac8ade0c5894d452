//go:build !mpi || !linux

package mpi

import (
	"errors"
	"os"
	"time"

	"onlinerna/train/ranks"
)

// Available reports whether the program was built with MPI.
const Available = false

// Open fails because the program was built without MPI.
func Open(ranks.World, time.Duration) (ranks.Engine, error) {
	return nil, errors.New("this program was built without MPI: build it with CGO_ENABLED=0 go build -tags mpi ./cmd/rna")
}

// Exit ends the process.
func Exit(code int) { os.Exit(code) }
