package data

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
)

// shardEntry is one sample of a shard: where its image is, and its label as written.
type shardEntry struct {
	key    string
	offset int64
	size   int64
	label  string
}

// tarBlock is the unit of a tar file: headers take one, contents are padded to it.
const tarBlock = 512

// indexShard visits the samples of a tar file of the given size, reading headers and labels only.
// As in WebDataset the members of a sample are neighbours, and a name is split at the first dot of
// its last element. Members of other kinds are passed over.
func indexShard(r io.ReaderAt, size int64, visit func(shardEntry) error) error {
	section := io.NewSectionReader(r, 0, size)
	archive := tar.NewReader(section)
	var group sampleGroup
	end := int64(0) // of the last member
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		at, _ := section.Seek(0, io.SeekCurrent) // the member's content
		if err != nil {
			return fmt.Errorf("cut short or damaged at offset %d: %w", at, err)
		}
		if header.Typeflag != tar.TypeReg {
			if end = at; header.Typeflag == tar.TypeGNUSparse {
				return fmt.Errorf("offset %d: %s is a sparse file, which is not supported", at, header.Name)
			}
			continue
		}
		if end = at + (header.Size+tarBlock-1)/tarBlock*tarBlock; end > size || end < at {
			return fmt.Errorf("cut short at offset %d: %s would end at %d", size, header.Name, end)
		}
		key, ext, ok := splitKey(header.Name)
		if !ok {
			continue
		}
		if key != group.entry.key {
			if err := group.flush(visit); err != nil {
				return err
			}
			group = sampleGroup{entry: shardEntry{key: key}}
		}
		if err := group.add(ext, at, header.Size, archive); err != nil {
			return fmt.Errorf("offset %d: %w", at, err)
		}
	}
	// archive/tar takes the end of the file for the end of the archive, which may as well be the
	// place where a copy was cut short.
	if size < end+tarBlock {
		return fmt.Errorf("cut short at offset %d: the mark of the archive's end is missing", size)
	}
	return group.flush(visit)
}

// splitKey splits a/b/c.d.e into the key a/b/c and the extension d.e, in lower case.
func splitKey(name string) (key, ext string, ok bool) {
	dir, base := path.Split(name)
	stem, ext, ok := strings.Cut(base, ".")
	if !ok || stem == "" {
		return "", "", false
	}
	return dir + stem, strings.ToLower(ext), true
}

// sampleGroup collects the members of one sample.
type sampleGroup struct {
	entry           shardEntry
	hasImage, hasID bool
	otherImage      string // the extension of an image that cannot be decoded
}

func (g *sampleGroup) add(ext string, at, size int64, content io.Reader) error {
	const maxLabel = 256
	switch dotted := "." + ext; {
	case ext == "cls":
		if g.hasID {
			return fmt.Errorf("key %s has two .cls", g.entry.key)
		}
		if size > maxLabel {
			return fmt.Errorf("key %s: its .cls has %d bytes, a label has %d at most", g.entry.key, size, maxLabel)
		}
		text, err := io.ReadAll(content)
		if err != nil {
			return fmt.Errorf("key %s: %w", g.entry.key, err)
		}
		g.hasID = true
		g.entry.label = string(bytes.TrimSpace(text))
	case slices.Contains(imageExtensions, dotted):
		if g.hasImage {
			return fmt.Errorf("key %s has two images", g.entry.key)
		}
		g.hasImage = true
		g.entry.offset, g.entry.size = at, size
	case slices.Contains(otherExtensions, dotted):
		g.otherImage = dotted
	}
	return nil
}

func (g *sampleGroup) flush(visit func(shardEntry) error) error {
	switch {
	case g.hasImage && g.hasID:
		return visit(g.entry)
	case g.hasImage:
		return fmt.Errorf("key %s has an image but no .cls", g.entry.key)
	case g.otherImage != "":
		return fmt.Errorf("key %s: %s images cannot be decoded; want %s", g.entry.key, g.otherImage, strings.Join(imageExtensions, ", "))
	case g.hasID:
		return fmt.Errorf("key %s has a .cls but no image (%s)", g.entry.key, strings.Join(imageExtensions, ", "))
	}
	return nil
}

// maxClasses bounds the labels of shards that don't say how many classes there are.
const maxClasses = 1 << 20

// parseLabel reads a label: an integer below classes, or a class by name.
func parseLabel(text string, classes int, index classIndex) (int32, error) {
	n, err := strconv.Atoi(text)
	switch {
	case err == nil && n >= 0 && n < classes:
		return int32(n), nil
	case err == nil:
		return 0, fmt.Errorf("label %d is outside [0, %d)", n, classes)
	case len(index.index) == 0:
		return 0, fmt.Errorf("label %q is not an integer, and there is no classes.txt that could name it", text)
	}
	return index.find(text)
}
