package torchfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"onlinerna/internal/pickle"
)

// readOld reads the format before zip archives: pickles of a magic number, the version, facts about the machine, the
// saved value and the keys of the storages; then, in the order of the keys, each storage's number of elements and the
// elements.
func readOld(r io.ReaderAt, size int64) (any, error) {
	top, err := readOldIn(r, size, firstPickles)
	if err != nil && size > firstPickles {
		return readOldIn(r, size, maxPickle)
	}
	return top, err
}

// firstPickles are the bytes in which pickles are sought first: nothing says where the storages begin.
const firstPickles = 8 << 20

// readOldIn is readOld with pickles in the first bytes of the file.
func readOldIn(r io.ReaderAt, size, first int64) (any, error) {
	in := make([]byte, min(size, first))
	if err := readAt(r, in, 0); err != nil {
		return nil, err
	}
	places := map[string]*place{}
	m := machine(in, len(oldMagic), func(key string) (*place, error) {
		if places[key] == nil {
			places[key] = &place{bytes: -1}
		}
		return places[key], nil
	})
	version, err := m.Run()
	if err != nil {
		return nil, fmt.Errorf("version: %w", err)
	}
	if version != any(int64(1001)) {
		return nil, fmt.Errorf("version %s: only 1001 is read", pickle.Shown(version))
	}
	facts, err := m.Run()
	if err != nil {
		return nil, fmt.Errorf("facts of the machine: %w", err)
	}
	if d, ok := facts.(*pickle.Dict); !ok || d.Lookup("little_endian") != any(true) {
		return nil, errors.New("of a machine that is not little-endian: only these are read")
	}
	top, err := m.Run()
	if err != nil {
		return nil, fmt.Errorf("pickle: %w", err)
	}
	keys, err := m.Run()
	if err != nil {
		return nil, fmt.Errorf("keys of storages: %w", err)
	}
	list, ok := keys.(*pickle.List)
	if !ok {
		return nil, fmt.Errorf("%s in place of the keys of storages", pickle.Kind(keys))
	}
	at := int64(m.At)
	for _, k := range list.Items {
		key, ok := k.(string)
		p := places[key]
		if !ok || p == nil || p.bytes >= 0 {
			return nil, fmt.Errorf("storage %s is in the file, and nothing refers to it", pickle.Shown(k))
		}
		var head [8]byte
		if err := readAt(r, head[:], at); err != nil {
			return nil, err
		}
		n := int64(binary.LittleEndian.Uint64(head[:]))
		at += int64(len(head))
		if n < 0 || n > (size-at)/int64(p.unit) || n*int64(p.unit) < p.need {
			return nil, fmt.Errorf("storage %.100q of %d elements: the file has %d bytes from there on, and %d are needed", key,
				n, size-at, p.need)
		}
		p.off, p.bytes = at, n*int64(p.unit)
		at += p.bytes
	}
	for key, p := range places {
		if p.bytes < 0 {
			return nil, fmt.Errorf("storage %.100q is not in the file", key)
		}
	}
	return top, nil
}
