package torchfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// maxDirectory bounds the archive's directory, with an entry of some 80 bytes for each storage.
const maxDirectory = 64 << 20

// archive is the directory of a zip file. Only stored entries can be read: torch.save does not compress, so no entry is
// larger than the file.
type archive struct {
	r       io.ReaderAt
	size    int64
	end     int64 // offset of the end record
	entries map[string]entry
}

type entry struct {
	method, flags uint16
	size, packed  uint64
	header        uint64 // offset of its local header
}

const (
	endLen     = 22 // the length of the end record without its comment
	end64Len   = 56
	locatorLen = 20
	headerLen  = 30
	centralLen = 46
)

var errTruncated = errors.New("not a zip archive, or cut short: its directory is missing")

func openArchive(r io.ReaderAt, size int64) (*archive, error) {
	a := &archive{r: r, size: size, entries: map[string]entry{}}
	tail := make([]byte, min(size, endLen+1<<16))
	if err := a.readAt(tail, size-int64(len(tail))); err != nil {
		return nil, err
	}
	at := bytes.LastIndex(tail, []byte("PK\x05\x06"))
	if at < 0 || len(tail)-at < endLen {
		return nil, errTruncated
	}
	end := tail[at:]
	a.end = size - int64(len(end))
	count := uint64(binary.LittleEndian.Uint16(end[10:]))
	length, start := uint64(binary.LittleEndian.Uint32(end[12:])), uint64(binary.LittleEndian.Uint32(end[16:]))
	if count == math.MaxUint16 || length == math.MaxUint32 || start == math.MaxUint32 {
		var err error
		if count, length, start, err = a.end64(a.end); err != nil {
			return nil, err
		}
	}
	if length > maxDirectory {
		return nil, fmt.Errorf("the archive's directory has %d bytes, more than the %d that are read", length, maxDirectory)
	}
	if start > uint64(size) || length > uint64(size)-start {
		return nil, errTruncated
	}
	dir := make([]byte, length)
	if err := a.readAt(dir, int64(start)); err != nil {
		return nil, err
	}
	return a, a.parse(dir, count)
}

// end64 reads the end record of a large archive, whose locator precedes the plain end record at off.
func (a *archive) end64(off int64) (count, length, start uint64, err error) {
	var loc [locatorLen]byte
	if off < locatorLen {
		return 0, 0, 0, errTruncated
	}
	if err := a.readAt(loc[:], off-locatorLen); err != nil {
		return 0, 0, 0, err
	}
	at := binary.LittleEndian.Uint64(loc[8:])
	if string(loc[:4]) != "PK\x06\x07" || at > uint64(a.size) {
		return 0, 0, 0, errTruncated
	}
	var end [end64Len]byte
	if err := a.readAt(end[:], int64(at)); err != nil {
		return 0, 0, 0, err
	}
	if string(end[:4]) != "PK\x06\x06" {
		return 0, 0, 0, errTruncated
	}
	le := binary.LittleEndian
	return le.Uint64(end[32:]), le.Uint64(end[40:]), le.Uint64(end[48:]), nil
}

func (a *archive) parse(dir []byte, count uint64) error {
	le := binary.LittleEndian
	for range count {
		if len(dir) < centralLen || string(dir[:4]) != "PK\x01\x02" {
			return fmt.Errorf("the archive's directory does not hold the %d entries that it announces", count)
		}
		e := entry{
			flags: le.Uint16(dir[8:]), method: le.Uint16(dir[10:]),
			packed: uint64(le.Uint32(dir[20:])), size: uint64(le.Uint32(dir[24:])), header: uint64(le.Uint32(dir[42:])),
		}
		n, x, c := int(le.Uint16(dir[28:])), int(le.Uint16(dir[30:])), int(le.Uint16(dir[32:]))
		if len(dir) < centralLen+n+x+c {
			return errTruncated
		}
		name, extra := string(dir[centralLen:centralLen+n]), dir[centralLen+n:centralLen+n+x]
		if err := e.widen(extra); err != nil {
			return fmt.Errorf("entry %q: %w", name, err)
		}
		if _, twice := a.entries[name]; twice {
			return fmt.Errorf("entry %q occurs twice in the archive", name)
		}
		a.entries[name] = e
		dir = dir[centralLen+n+x+c:]
	}
	return nil
}

// widen takes numbers beyond 32 bits from the extra field.
func (e *entry) widen(extra []byte) error {
	for len(extra) >= 4 {
		id, n := binary.LittleEndian.Uint16(extra), int(binary.LittleEndian.Uint16(extra[2:]))
		if extra = extra[4:]; n > len(extra) {
			return errors.New("its extra field is cut short")
		}
		if id == 1 {
			field := extra[:n]
			for _, v := range []*uint64{&e.size, &e.packed, &e.header} {
				if *v != math.MaxUint32 {
					continue
				}
				if len(field) < 8 {
					return errors.New("its size is missing")
				}
				*v, field = binary.LittleEndian.Uint64(field), field[8:]
			}
		}
		extra = extra[n:]
	}
	return nil
}

// section returns the offset and the length of an entry's bytes.
func (a *archive) section(name string) (off, bytes int64, err error) {
	e, ok := a.entries[name]
	switch {
	case !ok:
		return 0, 0, fmt.Errorf("the archive has no entry %.100q", name)
	case e.flags&1 != 0:
		return 0, 0, fmt.Errorf("entry %q is encrypted", name)
	case e.method != 0 || e.size != e.packed:
		return 0, 0, fmt.Errorf("entry %q is compressed (method %d), which torch.save does not do: "+
			"only stored entries are read", name, e.method)
	case e.header > uint64(a.size):
		return 0, 0, fmt.Errorf("entry %q lies outside the file", name)
	}
	var head [headerLen]byte
	if err := a.readAt(head[:], int64(e.header)); err != nil {
		return 0, 0, err
	}
	if string(head[:4]) != zipMagic {
		return 0, 0, fmt.Errorf("entry %q has no header", name)
	}
	off = int64(e.header) + headerLen + int64(binary.LittleEndian.Uint16(head[26:])) +
		int64(binary.LittleEndian.Uint16(head[28:]))
	if off > a.size || e.size > uint64(a.size-off) {
		return 0, 0, fmt.Errorf("entry %q of %d bytes exceeds the file", name, e.size)
	}
	return off, int64(e.size), nil
}

// read reads an entry of up to limit bytes.
func (a *archive) read(name string, limit int64) ([]byte, error) {
	off, n, err := a.section(name)
	if err != nil {
		return nil, err
	}
	if n > limit {
		return nil, fmt.Errorf("entry %q has %d bytes, more than the %d that are read", name, n, limit)
	}
	b := make([]byte, n)
	return b, a.readAt(b, off)
}

func (a *archive) readAt(b []byte, off int64) error { return readAt(a.r, b, off) }
