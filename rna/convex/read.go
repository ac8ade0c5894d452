package convex

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Formats names the formats that [ReadFile] reads, for messages.
const Formats = "CSV with the label first, libsvm, ARFF, MATLAB (level 5), or NIPS .data with a .labels file beside " +
	"it, each gzipped or not"

// ReadFile reads data in one of [Formats], recognised by the content and, for NIPS, by the name. Errors name the file
// and, if known, the line. If no format fits, the error describes the content.
func ReadFile(path string, loss Loss) (*Data, error) {
	in, closer, err := open(path)
	if err != nil {
		return nil, err
	}
	defer closer.Close()
	head, err := in.Peek(1 << 16)
	if err != nil && err != io.EOF {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	refuse := func(what string) (*Data, error) {
		return nil, fmt.Errorf("%s: %s: want %s", path, what, Formats)
	}
	line, _, _ := bytes.Cut(bytes.TrimLeft(head, "\r\n"), []byte("\n"))
	first := strings.ToLower(strings.TrimSpace(string(line)))
	name := strings.TrimSuffix(path, ".gz")
	switch {
	case len(head) == 0:
		return refuse("an empty file")
	case bytes.HasPrefix(head, []byte("MATLAB ")):
		return readMAT(in, path, loss)
	case bytes.HasPrefix(head, []byte("\x89HDF")):
		return refuse("an HDF5 file (of MATLAB 7.3: save it with -v7)")
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		return refuse("a zip archive (unpack it first)")
	case bytes.HasPrefix(head, []byte("BZh")), bytes.HasPrefix(head, []byte("\xfd7zXZ")),
		bytes.HasPrefix(head, []byte("\x28\xb5\x2f\xfd")):
		return refuse("a file compressed by bzip2, xz or zstd (unpack it first)")
	case bytes.HasPrefix(head, []byte("\x93NUMPY")):
		return refuse("a NumPy array")
	case bytes.HasPrefix(head, []byte("PAR1")):
		return refuse("a Parquet file")
	case bytes.IndexByte(head, 0) >= 0:
		return refuse("a binary file of no known format")
	case filepath.Ext(name) == ".data" && !strings.Contains(first, ","):
		return readNIPS(in, path, loss)
	case strings.HasPrefix(first, "@") || strings.HasPrefix(first, "%"):
		return ReadARFF(in, path, loss)
	case !strings.Contains(first, ",") && (strings.Contains(first, ":") ||
		bytes.IndexByte(head, ':') >= 0 && bytes.IndexByte(head, ',') < 0): // the first rows may be all zero
		return ReadLIBSVM(in, path, loss)
	case !strings.Contains(first, ",") &&
		len(strings.FieldsFunc(first, func(r rune) bool { return strings.ContainsRune(" \t;|", r) })) > 1:
		return refuse("lines of columns that no comma separates")
	}
	return ReadCSV(in, path, loss)
}

// open opens a file, gzipped or not, behind the mark of UTF-8 if it has one.
func open(path string) (*bufio.Reader, io.Closer, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	in := bufio.NewReaderSize(file, 1<<16)
	if magic, _ := in.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, nil, errors.Join(fmt.Errorf("%s: %w", path, err), file.Close())
		}
		in = bufio.NewReaderSize(z, 1<<16)
	}
	if mark, _ := in.Peek(3); string(mark) == "\ufeff" { // of UTF-8, before the text
		in.Discard(3)
	}
	return in, file, nil
}

// labelsFile opens the file of labels that belongs to another: the same name with one of some extensions, gzipped or
// not.
func labelsFile(path string, extensions ...string) (*bufio.Reader, io.Closer, string, error) {
	base := strings.TrimSuffix(path, ".gz")
	base = strings.TrimSuffix(base, filepath.Ext(base))
	for _, ext := range extensions {
		for _, name := range []string{base + ext, base + ext + ".gz"} {
			in, closer, err := open(name)
			if !errors.Is(err, os.ErrNotExist) {
				return in, closer, name, err
			}
		}
	}
	return nil, nil, "", fmt.Errorf("%s: no labels: want them, one a line, in %s%s beside it", path,
		filepath.Base(base), strings.Join(extensions, " or "))
}

// readLabels reads a file of one label a line, for n rows.
func readLabels(in io.Reader, name string, loss Loss, n int) (y []float64, labels [2]string, err error) {
	t := &targets{file: name, loss: loss}
	lines := bufio.NewScanner(in)
	line, count := 0, 0
	for lines.Scan() {
		line++
		text := strings.TrimSpace(lines.Text())
		if text == "" {
			continue
		}
		if err := t.add(text, line); err != nil {
			return nil, labels, err
		}
		if count++; count > n {
			return nil, labels, &FileError{name, line, fmt.Errorf("more labels than the %d rows", n)}
		}
	}
	if err := lines.Err(); err != nil {
		return nil, labels, &FileError{name, line + 1, err}
	}
	if count != n {
		return nil, labels, &FileError{name, 0, fmt.Errorf("%d labels for %d rows", count, n)}
	}
	return t.finish()
}
