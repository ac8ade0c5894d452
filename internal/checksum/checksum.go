// Package checksum detects damage in files with CRC-32C (Castagnoli), which processors compute at memory speed.
// Checksums of blocks locate the damage; a text can contain its own checksum.
package checksum

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"io"
)

// Block is the number of bytes that share a checksum.
const Block = 1 << 20

const digits = 8 // of a checksum in hexadecimal

var table = crc32.MakeTable(crc32.Castagnoli)

// Add continues a checksum, 0 at first, with further bytes.
func Add(sum uint32, b []byte) uint32 { return crc32.Update(sum, table, b) }

// Of is the checksum of all bytes of r, and their number.
func Of(r io.Reader) (sum uint32, n int64, err error) {
	h := crc32.New(table)
	n, err = io.Copy(h, r)
	return h.Sum32(), n, err
}

// Digits is a checksum in hexadecimal.
func Digits(sum uint32) string { return fmt.Sprintf("%08x", sum) }

// Blocks returns the checksums of n bytes of r from off on, one block after another.
func Blocks(r io.ReaderAt, off, n int64) (string, error) {
	out := make([]byte, 0, Len(n))
	err := each(r, off, n, func(_ int64, sum uint32) error {
		out = hex.AppendEncode(out, []byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)})
		return nil
	})
	return string(out), err
}

// Len is the length of the checksums of n bytes.
func Len(n int64) int { return int((n+Block-1)/Block) * digits }

// A DamagedError names the bytes of a file that differ from those written.
type DamagedError struct {
	From, To int64 // in the file
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("damaged: bytes %d to %d are not those that were written", e.From, e.To-1)
}

// Check compares n bytes of r from off on with the checksums that [Blocks] gave. The error is a *DamagedError for the
// first block that differs.
func Check(r io.ReaderAt, off, n int64, sums string) error {
	if len(sums) != Len(n) {
		return fmt.Errorf("damaged: checksums of %d blocks for %d bytes", len(sums)/digits, n)
	}
	return each(r, off, n, func(at int64, sum uint32) error {
		k := int(at / Block * digits)
		if sums[k:k+digits] != Digits(sum) {
			return &DamagedError{off + at, off + min(at+Block, n)}
		}
		return nil
	})
}

// each calls f with the checksum of each block, and the block's offset from off.
func each(r io.ReaderAt, off, n int64, f func(at int64, sum uint32) error) error {
	b := make([]byte, min(n, Block))
	for at := int64(0); at < n; at += Block {
		part := b[:min(n-at, Block)]
		if k, err := r.ReadAt(part, off+at); k < len(part) {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
		if err := f(at, Add(0, part)); err != nil {
			return err
		}
	}
	return nil
}

// Metered is r with a call of read for the bytes of each reading, whose error becomes that of the reading; r itself if
// read is nil.
func Metered(r io.ReaderAt, read func(bytes int64) error) io.ReaderAt {
	if read == nil {
		return r
	}
	return &metered{r, read}
}

type metered struct {
	r    io.ReaderAt
	read func(bytes int64) error
}

func (m *metered) ReadAt(b []byte, off int64) (int, error) {
	n, err := m.r.ReadAt(b, off)
	if stop := m.read(int64(n)); stop != nil {
		return 0, stop
	}
	return n, err
}

// Zeros stands for a text's own checksum while that is computed.
const Zeros = "00000000"

// Seal replaces the [Zeros] at a place in the last piece of a text by the checksum of all pieces.
func Seal(at int, pieces ...[]byte) {
	last := pieces[len(pieces)-1]
	copy(last[at:at+digits], Digits(sum(pieces)))
}

// Sealed reports whether a text has its checksum at a place of the last piece, as [Seal] writes it.
func Sealed(at int, pieces ...[]byte) bool {
	last := bytes.Clone(pieces[len(pieces)-1])
	if at < 0 || at+digits > len(last) {
		return false
	}
	has := string(last[at : at+digits])
	copy(last[at:], Zeros)
	return has == Digits(sum(append(pieces[:len(pieces)-1:len(pieces)-1], last)))
}

func sum(pieces [][]byte) uint32 {
	s := uint32(0)
	for _, p := range pieces {
		s = Add(s, p)
	}
	return s
}
