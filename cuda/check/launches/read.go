// Package launches reads the kernel launches that the stand-in recorded (RNA_SIM_RECORD of package sim) and compares
// the recorded memory with the result of the same source's PTX.
package launches

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"onlinerna/cuda/check/ptx"
)

// A Launch is a recorded launch.
type Launch struct {
	File, Source, Kernel string // Source is the key of the source
	// by parameter, the type that it points to: f float32, d float64, h 16 bits, p others; - for integers, . for others
	Types           string
	Blocks, Threads [3]int   // x, y, z
	Parameters      [][]byte // the bytes of each
	Before, After   []ptx.Block
}

// A Source is the source of some kernels.
type Source struct {
	Key     string
	Options []string // of NVRTC
	Text    string
}

// Read reads the launches and the sources of a folder, sorted by name.
func Read(folder string) (all []*Launch, sources map[string]*Source, err error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.launch"))
	if err != nil {
		return nil, nil, err
	}
	sources = map[string]*Source{}
	for _, file := range files {
		l, err := read(file)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, l)
		if sources[l.Source] != nil {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, l.Source+".cu"))
		if err != nil {
			return nil, nil, err
		}
		options, body, _ := strings.Cut(string(text), "\n")
		sources[l.Source] = &Source{Key: l.Source, Options: strings.Fields(options), Text: body}
	}
	return all, sources, nil
}

func read(file string) (*Launch, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	head, data, ok := bytes.Cut(data, []byte("\n\n"))
	if !ok {
		return nil, fmt.Errorf("the head is not terminated")
	}
	l := &Launch{File: file}
	type memory struct {
		at, size        uint64
		written, change int
	}
	var memories []memory
	for _, line := range strings.Split(string(head), "\n") {
		name, value, _ := strings.Cut(line, " ")
		var err error
		switch name {
		case "source":
			l.Source = value
		case "kernel":
			l.Kernel = value
		case "types":
			l.Types = strings.TrimSuffix(value, "|")
		case "grid":
			_, err = fmt.Sscan(value, &l.Blocks[0], &l.Blocks[1], &l.Blocks[2])
		case "block":
			_, err = fmt.Sscan(value, &l.Threads[0], &l.Threads[1], &l.Threads[2])
		case "shared":
			if value != "0" {
				err = fmt.Errorf("dynamic shared memory is not supported")
			}
		case "parameter":
			var p []byte
			p, err = hex.DecodeString(value)
			l.Parameters = append(l.Parameters, p)
		case "memory":
			var m memory
			_, err = fmt.Sscanf(value, "%x %d %d %d", &m.at, &m.size, &m.written, &m.change)
			memories = append(memories, m)
		default:
			err = fmt.Errorf("unknown line")
		}
		if err != nil {
			return nil, fmt.Errorf("line %q: %w", line, err)
		}
	}
	if len(l.Types) != len(l.Parameters) {
		return nil, fmt.Errorf("%d parameters, but %d types", len(l.Parameters), len(l.Types))
	}
	chunks := func(to []byte, n int) error {
		for range n {
			if len(data) < 16 {
				return fmt.Errorf("it ends too early")
			}
			from, size := binary.LittleEndian.Uint64(data), binary.LittleEndian.Uint64(data[8:])
			if data = data[16:]; from > uint64(len(to)) || size > uint64(len(to))-from || size > uint64(len(data)) {
				return fmt.Errorf("a chunk of %d bytes at %d of %d", size, from, len(to))
			}
			copy(to[from:], data[:size])
			data = data[size:]
		}
		return nil
	}
	for _, m := range memories {
		before := bytes.Repeat([]byte{0xff}, int(m.size))
		if err := chunks(before, m.written); err != nil {
			return nil, err
		}
		after := bytes.Clone(before)
		if err := chunks(after, m.change); err != nil {
			return nil, err
		}
		l.Before = append(l.Before, ptx.Block{At: m.at, Data: before})
		l.After = append(l.After, ptx.Block{At: m.at, Data: after})
	}
	return l, nil
}
