package statedict

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"onlinerna/internal/files"
)

// weightNames are the names of indexes and single files in folders of Hugging Face's libraries. The first that is there
// is read.
var weightNames = []string{"model.safetensors.index.json", "model.safetensors", "pytorch_model.bin.index.json",
	"diffusion_pytorch_model.safetensors.index.json", "adapter_model.safetensors", "diffusion_pytorch_model.safetensors",
	"open_clip_model.safetensors", "pytorch_model.bin", "adapter_model.bin", "open_clip_pytorch_model.bin"}

const indexEnd = ".index.json"

// HubFiles chooses from the names of a repository's files those that Open reads, and those that tell the net and how it
// takes images; nil without weights. An index, or the only file of weights, is last.
func HubFiles(names []string) (files []string) {
	for _, name := range []string{"config.json", "preprocessor_config.json",
		"processor_config.json", "adapter_config.json"} {
		if slices.Contains(names, name) {
			files = append(files, name)
		}
	}
	i := slices.IndexFunc(weightNames, func(name string) bool { return slices.Contains(names, name) })
	if i < 0 {
		return nil
	}
	if of, ok := strings.CutSuffix(weightNames[i], indexEnd); ok {
		for _, name := range names {
			if shardName.MatchString(name) && strings.HasPrefix(name, strings.TrimSuffix(of, filepath.Ext(of))+"-") &&
				filepath.Ext(name) == filepath.Ext(of) {
				files = append(files, name)
			}
		}
	}
	return append(files, weightNames[i])
}

const (
	distributedName = ".metadata" // of a distributed checkpoint

	// maxIndex bounds an index, with some 100 bytes a tensor.
	maxIndex = 64 << 20
)

// openFolder opens a folder's checkpoint: an index with its shards, a distributed checkpoint, or one file with a known
// name.
func (f *File) openFolder(key string) error {
	if isFile(filepath.Join(f.Path, distributedName)) {
		return f.openDistributed(key)
	}
	for _, name := range weightNames {
		path := filepath.Join(f.Path, name)
		switch {
		case !isFile(path):
		case strings.HasSuffix(name, indexEnd):
			return f.openIndex(path, key)
		default:
			return f.openFile(path, key)
		}
	}
	if dir, err := orbaxFolder(f.Path); dir != "" || err != nil {
		if err == nil {
			err = f.openOrbax(dir, key)
		}
		return err
	}
	return inFolder(f.Path, fmt.Errorf("%s is a folder, not a file", f.Path))
}

// IsFolder reports whether Open finds a checkpoint in a folder.
func IsFolder(path string) bool {
	for _, name := range append(slices.Clone(weightNames), distributedName) {
		if isFile(filepath.Join(path, name)) {
			return true
		}
	}
	dir, err := orbaxFolder(path)
	return dir != "" || err != nil
}

func isFile(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular()
}

// openIndex opens an index's shards, which all lie beside it.
func (f *File) openIndex(path, key string) error {
	list, _, err := readIndex(path)
	if err != nil {
		return err
	}
	of := map[string][]string{} // tensors by shard
	for _, e := range list {
		of[e.file] = append(of[e.file], e.tensor)
	}
	var shards []string
	for name := range of {
		shards = append(shards, name)
	}
	slices.Sort(shards)
	dir := filepath.Dir(path)
	first := ""
	where := map[string]string{}
	for _, name := range shards {
		from, before := filepath.Join(dir, name), len(f.Tensors)
		if err := f.openShard(from, key); err != nil {
			return fmt.Errorf("%w (a shard that %s names)", err, path)
		}
		if first == "" {
			first = string(f.Form)
		} else if first != string(f.Form) {
			return fmt.Errorf("%s names shards of several forms: %s and %s", path, first, f.Form)
		}
		for _, t := range f.Tensors[before:] {
			if other, twice := where[t.Name]; twice {
				return fmt.Errorf("tensor %q is both in %s and in %s", t.Name, filepath.Join(dir, other), from)
			}
			where[t.Name] = name
		}
	}
	said := map[string]string{}
	for _, e := range list {
		if where[e.tensor] != e.file {
			return fmt.Errorf("%s says that tensor %q is in %s, which lacks it", path, e.tensor, e.file)
		}
		said[e.tensor] = e.file
	}
	for _, t := range f.Tensors {
		if said[t.Name] == "" {
			return fmt.Errorf("tensor %q is in %s, and %s does not name it", t.Name, filepath.Join(dir, where[t.Name]), path)
		}
	}
	return nil
}

// openShard opens a file of safetensors or of torch.save.
func (f *File) openShard(path, key string) error {
	switch filepath.Ext(path) {
	case ".safetensors", ".bin", ".pt", ".pth":
		return f.openFile(path, key)
	}
	return fmt.Errorf("%s: shards are .safetensors or .bin", path)
}

type indexEntry struct{ tensor, file string }

// readIndex reads an index's weight_map, and the bytes of all tensors that it tells. A tensor named twice or a file
// outside the index's folder is an error.
func readIndex(path string) (_ []indexEntry, size float64, err error) {
	fd, n, err := files.OpenSized(path)
	if err != nil {
		return nil, 0, err
	}
	defer fd.Close()
	if n > maxIndex {
		return nil, 0, fmt.Errorf("%s: an index of %d bytes: at most %d are read", path, n, maxIndex)
	}
	b, err := io.ReadAll(io.LimitReader(fd, maxIndex))
	if err != nil {
		return nil, 0, err
	}
	var whole struct {
		Metadata json.RawMessage `json:"metadata"`
		Map      json.RawMessage `json:"weight_map"`
	}
	if err := json.Unmarshal(b, &whole); err != nil {
		return nil, 0, fmt.Errorf("%s is no index of shards: %w", path, err)
	}
	if whole.Map == nil {
		return nil, 0, fmt.Errorf("%s is JSON, not weights: "+
			"want safetensors, a file of torch.save, or an index with a weight_map", path)
	}
	list, err := weightMap(whole.Map, strings.HasSuffix(path, kerasIndex))
	if err != nil {
		return nil, 0, fmt.Errorf("%s: weight_map: %w", path, err)
	}
	var metadata struct {
		Size float64 `json:"total_size"`
	}
	if json.Unmarshal(whole.Metadata, &metadata) != nil {
		metadata.Size = 0 // of another form
	}
	return list, metadata.Size, nil
}

// weightMap reads an index's map from tensors to files, or from groups to lists of files.
func weightMap(b []byte, lists bool) ([]indexEntry, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("not an object of tensors and files")
	}
	var list []indexEntry
	seen := map[string]bool{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		value, err := d.Token()
		if err != nil {
			return nil, err
		}
		tensor, _ := key.(string)
		if seen[tensor] {
			return nil, fmt.Errorf("tensor %q is named twice", tensor)
		}
		seen[tensor] = true
		names := []json.Token{value}
		if lists && value == json.Delim('[') {
			names = nil
			for d.More() {
				if value, err = d.Token(); err != nil {
					return nil, err
				}
				names = append(names, value)
			}
			if _, err := d.Token(); err != nil {
				return nil, err
			}
		}
		for _, value := range names {
			name, ok := value.(string)
			if !ok {
				return nil, fmt.Errorf("tensor %q: not the name of a file", tensor)
			}
			if name == "" || name != filepath.Base(name) || !filepath.IsLocal(name) || strings.ContainsAny(name, `/\`) {
				return nil, fmt.Errorf("tensor %q is in %q, which is not the name of a file beside the index: refused", tensor,
					name)
			}
			list = append(list, indexEntry{tensor, name})
		}
	}
	if len(list) == 0 {
		return nil, errors.New("it names no tensor")
	}
	return list, nil
}

// Siblings lists the index and the other shards found beside a shard.
func (f *File) Siblings() []string {
	if _, n := shardOf(f.Path); n < 2 || f.Shards != 1 {
		return nil
	}
	base := filepath.Base(f.Path)
	m := shardName.FindStringIndex(base)
	var list []string
	all, _ := os.ReadDir(filepath.Dir(f.Path))
	for _, e := range all {
		if e.Name() != base && strings.HasPrefix(e.Name(), base[:m[0]]) &&
			(shardName.MatchString(e.Name()) || strings.HasSuffix(e.Name(), ".index.json")) {
			list = append(list, e.Name())
		}
	}
	return list
}
