package format

import (
	"errors"
	"fmt"
	"image"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"onlinerna/data/rawfile"
	"onlinerna/internal/files"
)

// rawExtension is the extension of package rawfile's files.
const rawExtension = ".rnaraw"

// rawLayout is the output of "rna data pack --raw": train-*.rnaraw beside val-*.rnaraw, and classes.txt.
var rawLayout = layout{
	want: "train-*" + rawExtension + " with val-*" + rawExtension,
	find: func(dir *listing) (Splits, error) {
		train, eval, other := dir.sharded(func(name string) bool { return strings.HasSuffix(name, rawExtension) })
		return openers(train, eval, other, openRaw), nil
	},
}

// raw is a set of images that are stored as pixels.
type raw struct {
	archive
	widths, heights []int32
}

func openRaw(paths []string, classes []string) (Set, error) {
	own, err := ReadClasses(filepath.Join(filepath.Dir(paths[0]), "classes.txt"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	parts, err := inParallel(len(paths), func(k int) ([]rawfile.Entry, error) {
		f, size, err := files.OpenSized(paths[k])
		if err != nil {
			return nil, fmt.Errorf("data: %w", err)
		}
		defer f.Close()
		list, err := rawfile.Read(f, size)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", paths[k], err)
		}
		return list, nil
	})
	if err != nil {
		return nil, err
	}
	d := new(raw)
	for k, list := range parts {
		d.files = append(d.files, &shardFile{path: paths[k], keep: k < maxOpenShards})
		d.first = append(d.first, len(d.labels))
		for _, e := range list {
			d.add(e.Name, e.Offset, e.Size(), e.Label)
			d.widths, d.heights = append(d.widths, int32(e.Width)), append(d.heights, int32(e.Height))
		}
	}
	if len(d.labels) == 0 {
		return nil, fmt.Errorf("%s: the files hold no images", filepath.Dir(paths[0]))
	}
	if most := int(slices.Max(d.labels)); own != nil && most >= len(own) {
		return nil, fmt.Errorf("%s: label %d is outside [0, %d), the classes of classes.txt",
			d.Name(slices.Index(d.labels, int32(most))), most, len(own))
	}
	if d.classes = classes; classes == nil {
		if d.classes = own; own == nil {
			if d.classes, err = counted(d.labels); err != nil {
				return nil, fmt.Errorf("%s: %w", filepath.Dir(paths[0]), err)
			}
		}
	}
	if i, err := remap(d.labels, own, d.classes); err != nil {
		return nil, fmt.Errorf("%s: %w", d.Name(i), err)
	}
	return d, nil
}

var _ Pixels = (*raw)(nil)

// Pixels reads the rows of the region, and no others.
func (d *raw) Pixels(i int, region func(width, height int) image.Rectangle, b *Buffer) (Part, error) {
	width, height := int(d.widths[i]), int(d.heights[i])
	box := image.Rect(0, 0, width, height)
	if region != nil {
		box = region(width, height)
	}
	row := int64(width) * rawfile.Channels
	pix, err := b.Read(d.file(i), d.offsets[i]+int64(box.Min.Y)*row, int64(box.Dy())*row)
	if err != nil {
		return Part{}, fmt.Errorf("%s: %w", d.Name(i), err)
	}
	return Part{pix, width, box.Dy(), box.Sub(image.Pt(0, box.Min.Y))}, nil
}
