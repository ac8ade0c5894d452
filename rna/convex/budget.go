package convex

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"onlinerna/internal/hostmemory"
	"onlinerna/internal/text"
)

// budget bounds the memory of a file's rows: a third of the free memory, since growing slices and matrices being scaled
// exist twice for a while.
type budget struct{ bytes, left int64 }

// unknownBudget holds if the free memory is unknown.
const unknownBudget = 4 << 30

// freeMemory returns the host's free memory; tests replace it.
var freeMemory = hostmemory.Free

func newBudget() *budget {
	n := freeMemory() / 3
	if n == 0 {
		n = unknownBudget
	}
	return &budget{n, n}
}

func (b *budget) take(bytes int64) error {
	if bytes > b.left {
		return fmt.Errorf("up to here the data take more than %s, a third of the free memory: use fewer rows or columns, "+
			"or a sparse format", text.Bytes(b.bytes))
	}
	b.left -= bytes
	return nil
}

// Bytes of memory.
const (
	rowBytes    = 32 // of a row: its start, label and target
	valueBytes  = 8
	sparseBytes = 12 // of a value with its column
)

// freeColumns is the number of columns that any file may have. More are refused if they also exceed the file's bytes,
// since the methods keep vectors of that length: ten methods some 500 MB of them.
const freeColumns = 1 << 20

// columnsError is an error for a number of columns out of proportion, nil for others.
func columnsError(columns int, bytes int64) error {
	if columns <= freeColumns || int64(columns) <= bytes {
		return nil
	}
	return fmt.Errorf("column %d in a file of %d bytes: more than %d columns need a file of as many bytes; number the "+
		"columns without gaps", columns, bytes, freeColumns)
}

// Bytes of a line: for rows parsed field by field, and for rows split into fields first.
const (
	longestLine  = 1 << 28
	longestSplit = 1 << 22
)

// newLines scans lines of a bounded length.
func newLines(r io.Reader, longest int) *bufio.Scanner {
	in := bufio.NewScanner(r)
	in.Buffer(nil, longest)
	return in
}

// boundedRows is a reader that fails when a row gets longer than longestSplit: next is called after each.
type boundedRows struct {
	r    io.Reader
	left int
}

var errLongRow = errors.New("a row of more than 4 MiB: libsvm, NIPS and MATLAB files may have longer ones")

func (b *boundedRows) next() { b.left = longestSplit }

func (b *boundedRows) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errLongRow
	}
	n, err := b.r.Read(p)
	b.left -= n
	return n, err
}
