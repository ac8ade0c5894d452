package format

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path/filepath"
	"regexp"
	"slices"

	"onlinerna/internal/files"
)

// recordLayout is TensorFlow's: train-00000-of-01024 with validation-00000-of-00128, TFRecords of tf.train.Example with
// image/encoded, image/class/label and, if there is one, image/class/synset.
var recordLayout = layout{
	want: "TFRecords train-00000-of-01024 with validation-00000-of-00128",
	find: func(dir *listing) (Splits, error) {
		train, eval, other := dir.sharded(isRecordName)
		return openers(train, eval, other, openRecords), nil
	},
}

var (
	recordName    = regexp.MustCompile(`-\d+-of-\d+$|\.tfrecords?$|\.tfrecord-\d+-of-\d+$`)
	shardOf       = regexp.MustCompile(`-(\d+)-of-(\d+)(\D|$)`)
	crcTable      = crc32.MakeTable(crc32.Castagnoli)
	errExample    = errors.New("not a tf.train.Example: its protocol buffer is damaged, or of another kind")
	errNoEncoded  = errors.New("has no image/encoded: only tf.train.Example with an encoded image can be read")
	errNoRecLabel = errors.New("has no image/class/label")
)

func isRecordName(path string) bool { return recordName.MatchString(filepath.Base(path)) }

// records is a set of images in TFRecords. Each record is read whole to verify its checksum.
type records struct {
	archive
	contents []content // by image
}

// content locates the content of a record, without its checksum.
type content struct {
	offset int64
	size   uint32
}

// openRecords indexes TFRecords. Labels count from 1, as in ImageNet's, unless one is 0.
func openRecords(paths []string, classes []string) (Set, error) {
	d := new(records)
	complete(paths, &d.notes)
	// By label as written: its synset, "" if it has none.
	type part struct {
		records
		synsets map[int32]string
	}
	parts, err := inParallel(len(paths), func(k int) (*part, error) {
		p := &part{synsets: map[int32]string{}}
		f, size, err := files.OpenSized(paths[k])
		if err != nil {
			return nil, fmt.Errorf("data: %w", err)
		}
		defer f.Close()
		err = visitRecords(&blockReader{r: f}, size, func(n int, e example) error {
			if known, ok := p.synsets[e.label]; ok && known != e.synset {
				return fmt.Errorf("label %d has the synsets %q and %q", e.label, known, e.synset)
			}
			p.synsets[e.label] = e.synset
			p.add(fmt.Sprintf("record %d", n), e.offset, e.size, e.label)
			p.contents = append(p.contents, e.content)
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", paths[k], err)
		}
		return p, nil
	})
	if err != nil {
		return nil, err
	}
	synsets := map[int32]string{}
	for k, p := range parts {
		for label, synset := range p.synsets {
			if known, ok := synsets[label]; ok && known != synset {
				return nil, fmt.Errorf("%s: label %d has the synset %q, in a file before it %q", paths[k], label,
					synset, known)
			}
			synsets[label] = synset
		}
		d.append(&p.archive, &shardFile{path: paths[k], keep: k < maxOpenShards})
		d.contents = append(d.contents, p.contents...)
	}
	if len(d.labels) == 0 {
		return nil, fmt.Errorf("%s: the files hold no records", filepath.Dir(paths[0]))
	}
	d.classes = classes
	if err := nameRecords(d, synsets); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Dir(paths[0]), err)
	}
	return d, nil
}

// Encoded implements Encoded.
func (d *records) Encoded(i int, b *Buffer) ([]byte, error) {
	c := d.contents[i]
	p, err := b.Read(d.file(i), c.offset, int64(c.size)+4)
	if err == nil && masked(p[:c.size]) != binary.LittleEndian.Uint32(p[c.size:]) {
		err = errors.New("does not match its checksum: damaged")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.Name(i), err)
	}
	from := d.offsets[i] - c.offset
	return p[from : from+int64(d.sizes[i])], nil
}

// Expect implements Expecter.
func (d *records) Expect(i int) {
	c := d.contents[i]
	d.file(i).expect(c.offset, int64(c.size))
}

// nameRecords makes classes of the labels as they are written.
func nameRecords(d *records, synsets map[int32]string) error {
	named := true
	for _, synset := range synsets {
		named = named && synset != ""
	}
	if named {
		found := make([]string, len(d.labels))
		for i, l := range d.labels {
			found[i] = synsets[l]
		}
		var err error
		d.classes, d.labels, err = label(found, d.classes, &d.notes)
		return err
	}
	if slices.Min(d.labels) > 0 {
		for i := range d.labels {
			d.labels[i]--
		}
		d.note("labels count from 1: 1 is the first class")
	}
	if d.classes == nil {
		var err error
		if d.classes, err = counted(d.labels); err != nil {
			return err
		}
	}
	if i, err := remap(d.labels, nil, d.classes); err != nil {
		return fmt.Errorf("%s: %w", d.Name(i), err)
	}
	return nil
}

// complete adds a note if files of a series 00000-of-00128 are missing.
func complete(paths []string, n *notes) {
	seen, of := map[int]bool{}, 0
	for _, path := range paths {
		if m := shardOf.FindStringSubmatch(filepath.Base(path)); m != nil {
			var k, total int
			fmt.Sscan(m[1], &k)
			fmt.Sscan(m[2], &total)
			seen[k], of = true, max(of, total)
		}
	}
	if of > 0 && len(seen) != of {
		n.note("%s: %d of %d files are here", filepath.Dir(paths[0]), len(seen), of)
	}
}

// example is the content of a record.
type example struct {
	offset, size int64 // of the image
	label        int32
	synset       string
	content      content
}

// visitRecords visits the examples of a TFRecord file, reading all but the images. Each record is the length, its
// masked CRC, the content and its masked CRC, which is checked when an image is read.
func visitRecords(r io.ReaderAt, size int64, visit func(n int, e example) error) error {
	var header [12]byte
	at := int64(0)
	for n := 0; at < size; n++ {
		if size-at < 16 {
			return fmt.Errorf("cut short at offset %d, within the header of record %d", size, n)
		}
		if _, err := r.ReadAt(header[:], at); err != nil {
			return fmt.Errorf("offset %d: %w", at, err)
		}
		length := binary.LittleEndian.Uint64(header[:])
		if masked(header[:8]) != binary.LittleEndian.Uint32(header[8:]) {
			return fmt.Errorf("offset %d: the length of record %d does not match its checksum: damaged, or not a "+
				"TFRecord file (compressed ones cannot be read)", at, n)
		}
		if length > uint64(size-at-16) {
			return fmt.Errorf("cut short at offset %d: record %d would end at %d", size, n, uint64(at)+16+length)
		}
		p := proto{r: r, at: at + 12, end: at + 12 + int64(length)}
		e, err := p.example()
		if err != nil {
			return fmt.Errorf("record %d at offset %d: %w", n, at, err)
		}
		e.content = content{at + 12, uint32(min(length, 1<<32-1))}
		if err := visit(n, e); err != nil {
			return fmt.Errorf("record %d at offset %d: %w", n, at, err)
		}
		at = p.end + 4
	}
	return nil
}

// masked is the CRC-32C as TFRecords store it.
func masked(b []byte) uint32 {
	crc := crc32.Checksum(b, crcTable)
	return crc>>15 | crc<<17 + 0xa282ead8
}
