package network

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"onlinerna/internal/files"
	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/train/ranks/shard"
	"onlinerna/train/safetensors"
)

// A Share is the part of a vector's tensors that one of several processes writes, as a shard with its own name; the
// first process adds the index. A process with an Index of at least Of writes nothing. The zero Share is the whole, in
// one file.
type Share struct{ Index, Of int }

// File is the name of this share of a file.
func (s Share) File(path string) string {
	if s.Of <= 1 {
		return path
	}
	ext := filepath.Ext(path)
	return fmt.Sprintf("%s-%05d-of-%05d%s", strings.TrimSuffix(path, ext), s.Index+1, s.Of, ext)
}

// shareName is the end of a name by Share.File.
var shareName = regexp.MustCompile(`-(\d{5,})-of-(\d{5,})(\.[^.]*)?$`)

// ShareOf is the share that a file's name tells, the zero Share if it tells none.
func ShareOf(name string) Share {
	m := shareName.FindStringSubmatch(name)
	if m == nil {
		return Share{}
	}
	k, _ := strconv.Atoi(m[1])
	of, _ := strconv.Atoi(m[2])
	return Share{k - 1, of}
}

// Shares lists the files of all shares of a file, in order; none if it was written by a single process.
func Shares(path string) ([]string, error) {
	all, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	for _, e := range all {
		s := ShareOf(e.Name())
		if s.Of < 2 || s.Index != 0 || e.Name() != filepath.Base(s.File(path)) {
			continue
		}
		list := make([]string, s.Of)
		for k := range list {
			list[k] = Share{k, s.Of}.File(path)
		}
		return list, nil
	}
	return nil, nil
}

// owner is the process that writes a parameter: the one whose part of vectors has its middle. So most snapshots' tensors
// lie where they are written.
func (n *Network) owner(s slot, of int) int {
	if of <= 1 {
		return 0
	}
	return (s.off + s.n/2) / shard.Largest(n.Params.Len(), of)
}

// entryOwner is the process that writes an entry of the state dict.
func (n *Network) entryOwner(e nn.Entry, of int) int {
	if e.Kind == nn.Parameter {
		return n.owner(n.params[e.Index], of)
	}
	return 0
}

// Straddling lists the parameters that no single one of the ranks' parts of a vector holds for its writer, one of the
// first writers processes.
func (n *Network) Straddling(writers, ranks int) []device.Span {
	part := shard.Largest(n.Params.Len(), ranks)
	var list []device.Span
	for _, s := range n.params {
		if k := n.owner(s, writers); s.off < k*part || s.off+s.n > (k+1)*part {
			list = append(list, device.Span{Off: s.off, Len: s.n})
		}
	}
	return list
}

// tensor is a tensor to write: its description, its writer and its numbers.
type tensor struct {
	safetensors.Tensor
	owner int
	data  func() (any, error)
}

// write writes a share of tensors.
func (s Share) write(path string, all []tensor, meta map[string]string) error {
	var own []safetensors.Tensor
	for _, t := range all {
		if t.owner == s.Index {
			own = append(own, t.Tensor)
		}
	}
	if s.Index == 0 && s.Of > 1 {
		if err := writeIndex(path, s.Of, all); err != nil {
			return err
		}
	}
	if len(own) == 0 {
		return nil
	}
	w, err := safetensors.Create(s.File(path), own, meta)
	if err != nil {
		return err
	}
	defer w.Abort()
	for _, t := range all {
		if t.owner != s.Index {
			continue
		}
		data, err := t.data()
		if err != nil {
			return err
		}
		if err := w.Write(t.Name, data); err != nil {
			return err
		}
	}
	return w.Commit()
}

// writeIndex writes the index of shards, in the form of Hugging Face's libraries, beside them.
func writeIndex(path string, of int, all []tensor) error {
	places := map[string]string{}
	for _, t := range all {
		places[t.Name] = filepath.Base(Share{t.owner, of}.File(path))
	}
	b, err := json.MarshalIndent(map[string]any{"metadata": map[string]any{}, "weight_map": places}, "", "  ")
	if err != nil {
		return err
	}
	return files.Write(path+".index.json", append(b, '\n'))
}
