package format

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"onlinerna/data/internal/shardfile"
	"onlinerna/internal/files"
)

// shardLayout is WebDataset's, timm's imagenet1k-train-0000.tar and imagenet1k-validation-00.tar included.
var shardLayout = layout{
	want: "train-*.tar with val-*.tar or test-*.tar",
	find: func(dir *listing) (Splits, error) {
		train, eval, other := dir.sharded(func(name string) bool {
			return strings.HasSuffix(name, ".tar") && !strings.HasPrefix(name, imageNetPrefix)
		})
		return openers(train, eval, other, openShards), nil
	},
}

// openTar opens one tar file: shards, or one of ImageNet's two.
func openTar(path string, classes []string) (Set, error) {
	switch dir := (&listing{path: filepath.Dir(path)}); filepath.Base(path) {
	case imageNetTrain:
		return openImageNetTrain(path, classes)
	case imageNetVal:
		return openImageNetVal(path, dir, classes)
	}
	return openShards([]string{path}, classes)
}

// openShards indexes shards, which share the classes.txt beside the first one. Without it the classes are "0", "1", …
// up to the largest label, unless classes are given.
func openShards(paths []string, classes []string) (Set, error) {
	own, err := ReadClasses(filepath.Join(filepath.Dir(paths[0]), "classes.txt"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	limit := maxClasses
	switch {
	case own != nil:
		limit = len(own)
	case classes != nil:
		limit = len(classes)
	}
	index := newClassIndex(own)
	d, err := indexFiles("shard", paths, func(part *archive,
		path string) error {
		return part.scanShard(path, limit, index)
	})
	if err != nil {
		return nil, err
	}
	d.classes = classes
	if len(d.labels) == 0 {
		return nil, fmt.Errorf("%s: the shards hold no samples: want <key>.jpg and <key>.cls", filepath.Dir(paths[0]))
	}
	if d.classes == nil {
		if d.classes = own; own == nil {
			if d.classes, err = counted(d.labels); err != nil {
				return nil, fmt.Errorf("%s: %w", filepath.Dir(paths[0]), err)
			}
		}
	}
	if i, err := remap(d.labels, own, d.classes); err != nil {
		return nil, fmt.Errorf("%s: %w", d.Name(i), err)
	}
	return verbatim{d}, nil
}

// maxClassesFile bounds the bytes of a file with the names of classes.
const maxClassesFile = 16 << 20

// ReadClasses reads the names of classes, one a line.
func ReadClasses(path string) ([]string, error) {
	b, err := files.ReadAtMost(path, maxClassesFile)
	if err != nil {
		return nil, fmt.Errorf("classes: %w", err)
	}
	lines := strings.Split(strings.TrimRight(string(b), " \t\r\n"), "\n")
	for i, line := range lines {
		if lines[i] = strings.TrimSpace(line); lines[i] == "" {
			return nil, fmt.Errorf("%s: line %d is empty: want one class a line", path, i+1)
		}
	}
	return lines, nil
}

// scanShard adds the samples of one shard.
func (d *archive) scanShard(path string, classes int, index classIndex) error {
	f, size, err := files.OpenSized(path)
	if err != nil {
		return err
	}
	defer f.Close()
	visit := func(e shardEntry) error {
		label, err := parseLabel(e.label, classes, index)
		if err != nil {
			return fmt.Errorf("key %s: %w", e.key, err)
		}
		d.add(e.key, e.offset, e.size, label)
		return nil
	}
	entries, ok, err := shardfile.Read(path, size)
	if err != nil {
		return err
	}
	if !ok {
		return indexShard(&blockReader{r: f}, size, visit)
	}
	for _, e := range entries {
		if err := visit(shardEntry{e.Key, e.Offset, e.Size, e.Label}); err != nil {
			return err
		}
	}
	return nil
}
