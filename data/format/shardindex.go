package format

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
)

// shardEntry is one sample of a shard: the place of its image, and its label as written.
type shardEntry struct {
	key    string
	offset int64
	size   int64
	label  string
}

// tarBlock is the unit of a tar file: headers take one, contents are padded to it.
const tarBlock = 512

// indexShard visits the samples of a tar file of the given size, reading headers and labels only. As in WebDataset
// the members of a sample are neighbours, and a name is split at the first dot of its last element. Other members are
// skipped.
func indexShard(r io.ReaderAt, size int64, visit func(shardEntry) error) error {
	var group sampleGroup
	err := visitTar(r, 0, size, func(m tarMember, content io.Reader) error {
		key, ext, ok := splitKey(m.name)
		if !ok {
			return nil
		}
		if key != group.entry.key {
			if err := group.flush(visit); err != nil {
				return err
			}
			group = sampleGroup{entry: shardEntry{key: key}}
		}
		if err := group.add(ext, m.offset, m.size, content); err != nil {
			return fmt.Errorf("offset %d: %w", m.offset, err)
		}
		return nil
	})
	if err != nil {
		return err
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
	metadata        *metadata // of its .json
	otherImage      string    // the extension of an image that cannot be decoded
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
	case ext == "json":
		const maxJSON = 1 << 20
		if size > maxJSON {
			return fmt.Errorf("key %s: its .json has %d bytes, more than %d", g.entry.key, size, maxJSON)
		}
		text, err := io.ReadAll(content)
		if err == nil {
			g.metadata = new(metadata)
			err = json.Unmarshal(text, g.metadata)
		}
		if err != nil {
			return fmt.Errorf("key %s: its .json: %w", g.entry.key, err)
		}
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

// metadata holds the fields of timm's .json that are used.
type metadata struct {
	Label json.RawMessage // a number or a name
}

// jsonLabel takes the label of the .json if there is no .cls.
func (g *sampleGroup) jsonLabel() {
	if g.hasID || g.metadata == nil || len(g.metadata.Label) == 0 {
		return
	}
	label := g.metadata.Label
	var name string
	if json.Unmarshal(label, &name) != nil {
		name = string(label)
	}
	if name != "null" {
		g.hasID, g.entry.label = true, name
	}
}

func (g *sampleGroup) flush(visit func(shardEntry) error) error {
	g.jsonLabel()
	switch {
	case g.hasImage && g.hasID:
		return visit(g.entry)
	case g.hasImage:
		return fmt.Errorf("key %s has an image but no .cls, nor a .json with \"label\"", g.entry.key)
	case g.otherImage != "":
		return fmt.Errorf("key %s: %s images cannot be decoded; want %s", g.entry.key, g.otherImage,
			strings.Join(imageExtensions, ", "))
	case g.hasID:
		return fmt.Errorf("key %s has a .cls but no image (%s)", g.entry.key, strings.Join(imageExtensions, ", "))
	}
	return nil
}

// maxClasses bounds the labels of shards with an unknown number of classes.
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
