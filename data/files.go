package data

import (
	"fmt"
	"os"

	"onlinerna/data/format"
	"onlinerna/data/imaging"
	"onlinerna/internal/files"
)

// Unlabelled is a set of images without labels: files, and images in memory.
type Unlabelled struct {
	channels int
	names    []string
	content  [][]byte // nil for files
}

var _ Dataset = (*Unlabelled)(nil)

// NewUnlabelled makes an empty set. Its images are read as gray (1 channel) or colour (3 channels).
func NewUnlabelled(channels int) *Unlabelled { return &Unlabelled{channels: channels} }

// AddFile adds an image file, or all images below a folder, sorted by name.
func (d *Unlabelled) AddFile(path string) error {
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !st.IsDir() {
		d.names, d.content = append(d.names, path), append(d.content, nil)
		return nil
	}
	files, err := format.Images(path)
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s: a folder without images", path)
	}
	d.names, d.content = append(d.names, files...), append(d.content, make([][]byte, len(files))...)
	return err
}

// AddEncoded adds an image in the form of a file.
func (d *Unlabelled) AddEncoded(name string, b []byte) {
	d.names, d.content = append(d.names, name), append(d.content, b)
}

// Only returns the set of image i alone.
func (d *Unlabelled) Only(i int) *Unlabelled {
	return &Unlabelled{d.channels, d.names[i : i+1], d.content[i : i+1]}
}

func (d *Unlabelled) Len() int          { return len(d.names) }
func (d *Unlabelled) Classes() []string { return nil }
func (d *Unlabelled) Channels() int     { return d.channels }
func (d *Unlabelled) Label(int) int     { return -1 }
func (d *Unlabelled) Name(i int) string { return d.names[i] }

func (d *Unlabelled) Read(i int, region Region, s *Scratch) (*imaging.Image, error) {
	b, name := d.content[i], d.names[i]
	if b == nil {
		f, size, err := files.OpenSized(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		if b, err = s.file.Read(f, 0, size); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	m, err := s.decode(b, d.channels, region)
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return m, err
}
