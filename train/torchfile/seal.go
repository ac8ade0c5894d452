package torchfile

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"maps"
	"slices"

	"onlinerna/internal/checksum"
)

// sealPrefix begins the comment of this package's archives: the checksum of all bytes outside of entries, with zeros in
// its own place. The entries have checksums of zip.
const (
	sealPrefix = "rna crc32c "
	sealLen    = uint16(len(sealPrefix) + len(checksum.Zeros))
)

var errSeal = errors.New("damaged: the archive's headers or its directory are not those that were written")

// Sealed compares the bytes outside of an archive's entries with their checksum. ok is false for other programs'
// archives, which have none.
func Sealed(r io.ReaderAt, size int64) (ok bool, err error) {
	var magic [4]byte
	if err := readAt(r, magic[:], 0); err != nil || string(magic[:]) != zipMagic {
		return false, err // the format before zip
	}
	a, err := openArchive(r, size)
	if err != nil {
		return false, err
	}
	tail := make([]byte, size-a.end)
	if err := a.readAt(tail, a.end); err != nil {
		return false, err
	}
	// A damaged bit leaves either the prefix or the comment's length.
	text := len(tail) - int(sealLen)
	if !bytes.Contains(tail, []byte(sealPrefix)) && text != endLen {
		return false, nil
	}
	if text < endLen {
		return true, errSeal
	}
	sum, at := uint32(0), int64(0)
	gap := func(to int64) error {
		if to < at || to-at > maxDirectory+1<<20 {
			return errSeal
		}
		b := make([]byte, to-at)
		at = to
		err := a.readAt(b, to-int64(len(b)))
		sum = checksum.Add(sum, b)
		return err
	}
	names := slices.SortedFunc(maps.Keys(a.entries), func(x, y string) int {
		return cmp.Compare(a.entries[x].header, a.entries[y].header)
	})
	for _, name := range names {
		off, n, err := a.section(name)
		if err != nil {
			return true, err
		}
		if err := gap(off); err != nil {
			return true, err
		}
		at = off + n
	}
	if err := gap(size - int64(len(checksum.Zeros))); err != nil {
		return true, err
	}
	sum = checksum.Add(sum, []byte(checksum.Zeros))
	if !bytes.HasSuffix(tail, []byte(checksum.Digits(sum))) {
		return true, errSeal
	}
	return true, nil
}
