package files

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// MaxLine bounds a line for [Lines].
const MaxLine = 64 << 20

// Lines visits the lines of r, each with its newline, which the last may lack. A line is valid until the next. A line
// of more than MaxLine bytes is an error, which numbers it from 1: where a disk has lost a file's content, or a file
// has a hole, zeros make one line.
func Lines(r io.Reader, visit func(line []byte) error) error {
	in := bufio.NewReaderSize(r, 64<<10)
	var long []byte
	for n := 1; ; n++ {
		line, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			long = long[:0]
			for errors.Is(err, bufio.ErrBufferFull) && len(long)+len(line) <= MaxLine {
				long = append(long, line...)
				line, err = in.ReadSlice('\n')
			}
			if len(long)+len(line) > MaxLine {
				return fmt.Errorf("line %d has more than %d bytes", n, MaxLine)
			}
			long = append(long, line...)
			line = long
		}
		if err != nil && err != io.EOF {
			return err
		}
		if len(line) == 0 {
			return nil
		}
		if err := visit(line); err != nil {
			return err
		}
	}
}

// Whole reports whether a line of [Lines] has its newline: the last may be cut short, or still be written.
func Whole(line []byte) bool { return bytes.HasSuffix(line, []byte("\n")) }
