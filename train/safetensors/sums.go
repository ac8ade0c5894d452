package safetensors

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"onlinerna/internal/checksum"
)

// sumKey is the metadata key of the checksums. The value is the size of a block, the checksum of the header with the
// eight bytes before it, computed with zeros in this place, and those of the data's blocks: CRC-32C in hexadecimal.
const sumKey = "crc32c"

var sumsBefore = strconv.Itoa(checksum.Block) + ":"

// unsealed is the value for n bytes of data before the checksums are computed.
func unsealed(n int64) string {
	return sumsBefore + checksum.Zeros + ":" + strings.Repeat("0", checksum.Len(n))
}

// sumPlace is the position of the header's own checksum in the header, -1 if there is none.
func sumPlace(head []byte) int {
	before := []byte(`"` + sumKey + `":"` + sumsBefore)
	at := bytes.Index(head, before)
	if at < 0 {
		return -1
	}
	return at + len(before)
}

// seal writes the checksums into the header of an otherwise complete file.
func (w *Writer) seal() error {
	at := sumPlace(w.head)
	if at < 0 {
		return nil
	}
	end, err := w.file.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	sums, ok := w.blocks(end - w.start)
	if !ok {
		if sums, err = checksum.Blocks(w.file, w.start, end-w.start); err != nil {
			return err
		}
	}
	copy(w.head[at+len(checksum.Zeros)+1:], sums)
	prefix := make([]byte, 8)
	if _, err := w.file.ReadAt(prefix, 0); err != nil {
		return err
	}
	checksum.Seal(at, prefix, w.head)
	_, err = w.file.WriteAt(w.head, 8)
	return err
}

// sealed takes the checksums, if any, out of the metadata and checks the header.
func (f *File) sealed(prefix, head []byte) error {
	value, ok := f.Metadata[sumKey]
	if !ok {
		for key, value := range f.Metadata {
			if strings.HasPrefix(value, sumsBefore) {
				return fmt.Errorf("the header is damaged: %q is not %q", key, sumKey)
			}
		}
		return nil
	}
	delete(f.Metadata, sumKey)
	const own = len(checksum.Zeros)
	rest, ok := strings.CutPrefix(value, sumsBefore)
	if !ok || len(rest) <= own || !checksum.Sealed(sumPlace(head), prefix, head) {
		return errors.New("the header is damaged (or another program has copied the metadata " + sumKey +
			", which it should leave out)")
	}
	f.sums = rest[own+1:]
	return nil
}

// Verify reads the whole file and compares it with its checksums. ok is false for other programs' files, which have
// none.
func (f *File) Verify() (ok bool, err error) { return f.VerifyWith(nil) }

// VerifyWith is [File.Verify]. read, unless it is nil, receives the bytes that were read since its last call; its error
// ends the work.
func (f *File) VerifyWith(read func(bytes int64) error) (ok bool, err error) {
	if f.sums == "" {
		return false, nil
	}
	if err := f.Sums().check(f.file, read); err != nil {
		return false, fmt.Errorf("%s: %w", f.path, f.blame(err))
	}
	return true, nil
}

// Sums are the checksums of a file's data, to verify it without its header in memory.
type Sums struct {
	start  int64 // of the data section
	blocks string
}

// Sums returns the checksums; the zero Sums if there are none.
func (f *File) Sums() Sums {
	if f.sums == "" {
		return Sums{}
	}
	return Sums{f.start, f.sums}
}

// VerifyWith is [File.VerifyWith] of the file that the checksums are from. Only the error for a damaged file reads the
// header again.
func (s Sums) VerifyWith(file *os.File, read func(bytes int64) error) (ok bool, err error) {
	if s == (Sums{}) {
		return false, nil
	}
	if err = s.check(file, read); err == nil {
		return true, nil
	}
	if errors.As(err, new(*checksum.DamagedError)) {
		if f, e := Of(file); e == nil {
			err = f.blame(err)
		}
	}
	return false, fmt.Errorf("%s: %w", file.Name(), err)
}

func (s Sums) check(file *os.File, read func(bytes int64) error) error {
	st, err := file.Stat()
	if err != nil {
		return err
	}
	return checksum.Check(checksum.Metered(file, read), s.start, st.Size()-s.start, s.blocks)
}

// blame names the damaged tensors.
func (f *File) blame(err error) error {
	var d *checksum.DamagedError
	if !errors.As(err, &d) {
		return err
	}
	var names []string
	for _, t := range f.Tensors {
		if t.bytes > 0 && f.start+t.off < d.To && f.start+t.off+t.bytes > d.From {
			names = append(names, t.Name)
		}
	}
	if len(names) > 3 {
		names = append(names[:2], "…", names[len(names)-1])
	}
	return fmt.Errorf("%w (%s)", err, strings.Join(names, ", "))
}
