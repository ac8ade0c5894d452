// Package shardfile keeps the index of a tar shard beside it, in a file whose name adds .idx, so that opening a set of
// many shards reads no shard. The first line is "onlinerna-shard-index 1 SIZE COUNT", where SIZE is the shard's; COUNT
// lines "OFFSET SIZE LABEL KEY" follow, one an image.
package shardfile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"onlinerna/internal/files"
)

// Extension follows the name of the shard.
const Extension = ".idx"

const title = "onlinerna-shard-index 1"

// Entry is an image of a shard: its label as in the .cls file, and its bytes.
type Entry struct {
	Offset, Size int64
	Label, Key   string
}

// Format is the content of the index of a shard of size bytes.
func Format(size int64, entries []Entry) []byte {
	b := fmt.Appendf(nil, "%s %d %d\n", title, size, len(entries))
	for _, e := range entries {
		b = fmt.Appendf(b, "%d %d %s %s\n", e.Offset, e.Size, e.Label, e.Key)
	}
	return b
}

// Read reads the index of a shard of size bytes. ok is false if there is no index, or it does not belong to the
// shard: the shard's size differs, or it was written after the index.
func Read(shard string, size int64) (entries []Entry, ok bool, err error) {
	path := shard + Extension
	b, err := files.ReadFileAtMost(path, 1<<30)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	if of, err := os.Stat(shard); err == nil {
		if own, err := os.Stat(path); err == nil && of.ModTime().After(own.ModTime()) {
			return nil, false, nil
		}
	}
	entries, ok, err = parse(b, size)
	if err != nil {
		return nil, false, fmt.Errorf("%s: %w; delete it, and the shard is read without an index", path, err)
	}
	return entries, ok, nil
}

func parse(b []byte, size int64) (entries []Entry, ok bool, err error) {
	lines := bufio.NewScanner(bytes.NewReader(b))
	var of, count int64
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), title+" ") {
		return nil, false, errors.New("not the index of a shard")
	}
	if _, err := fmt.Sscanf(lines.Text()[len(title):], "%d %d", &of, &count); err != nil {
		return nil, false, fmt.Errorf("line 1: %w", err)
	}
	if of != size {
		return nil, false, nil
	}
	for lines.Scan() {
		words := strings.SplitN(lines.Text(), " ", 4)
		if len(words) < 4 {
			return nil, false, fmt.Errorf("line %d: want an offset, a size, a label and a key", len(entries)+2)
		}
		e := Entry{Label: words[2], Key: words[3]}
		var errs [2]error
		e.Offset, errs[0] = strconv.ParseInt(words[0], 10, 64)
		e.Size, errs[1] = strconv.ParseInt(words[1], 10, 64)
		if errs[0] != nil || errs[1] != nil || e.Offset < 0 || e.Size < 0 || e.Offset > size || e.Size > size-e.Offset {
			return nil, false, fmt.Errorf("line %d: [%s, +%s) of a shard of %d bytes", len(entries)+2, words[0],
				words[1], size)
		}
		entries = append(entries, e)
	}
	if err := lines.Err(); err != nil {
		return nil, false, err
	}
	if int64(len(entries)) != count {
		return nil, false, fmt.Errorf("%d entries, want %d: cut short", len(entries), count)
	}
	return entries, true, nil
}
