package format

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"onlinerna/internal/files"
)

// The official archives of ImageNet (ILSVRC 2012).
const (
	imageNetPrefix = "ILSVRC2012_img_"
	imageNetTrain  = imageNetPrefix + "train.tar" // a tar of 1,000 tars, one a class
	imageNetVal    = imageNetPrefix + "val.tar"   // flat; the devkit has its labels
)

// imageNetLayout reads the official archives in place.
var imageNetLayout = layout{
	want: "ImageNet's " + imageNetTrain + " with " + imageNetVal + " and " + devkitArchive,
	find: func(dir *listing) (Splits, error) {
		var s Splits
		if train := dir.file(imageNetTrain); train != "" {
			s.Train = func(classes []string) (Set, error) { return openImageNetTrain(train, classes) }
		}
		if val := dir.file(imageNetVal); val != "" {
			s.Eval = func(classes []string) (Set, error) { return openImageNetVal(val, dir, classes) }
		}
		return s, nil
	},
}

// tarMember is a regular file of a tar, with the place of its content.
type tarMember struct {
	name         string
	offset, size int64
}

// visitTar visits the files of a tar of size bytes that begins at start of r. It reads only headers, unless visit
// reads the content.
func visitTar(r io.ReaderAt, start, size int64, visit func(m tarMember, content io.Reader) error) error {
	section := io.NewSectionReader(r, start, size)
	archive := tar.NewReader(section)
	end := int64(0) // of the last member
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		at, _ := section.Seek(0, io.SeekCurrent) // the member's content
		if err != nil {
			return fmt.Errorf("cut short or damaged at offset %d: %w", start+at, err)
		}
		if header.Typeflag != tar.TypeReg {
			if end = at; header.Typeflag == tar.TypeGNUSparse {
				return fmt.Errorf("offset %d: %s is a sparse file, which is not supported", start+at, header.Name)
			}
			continue
		}
		if end = at + (header.Size+tarBlock-1)/tarBlock*tarBlock; end > size || end < at {
			return fmt.Errorf("cut short at offset %d: %s would end at %d", start+size, header.Name, start+end)
		}
		if err := visit(tarMember{header.Name, start + at, header.Size}, archive); err != nil {
			return err
		}
	}
	// archive/tar accepts the end of the file as the end of the archive, but a truncated copy ends there too.
	if size < end+tarBlock {
		return fmt.Errorf("cut short at offset %d: the mark of the archive's end is missing", start+size)
	}
	return onlyZeros(r, start+end, start+size)
}

// onlyZeros fails if data follows the end mark of an archive: two archives were joined, or a part was lost. The mark
// and the padding of an archive are zeros.
func onlyZeros(r io.ReaderAt, at, end int64) error {
	var buf [8 << 10]byte
	for at < end {
		n, err := r.ReadAt(buf[:min(int64(len(buf)), end-at)], at)
		for i, c := range buf[:n] {
			if c != 0 {
				return fmt.Errorf("offset %d: data follows the mark of the archive's end: it was written over in "+
					"part, or two archives were joined", at+int64(i))
			}
		}
		if at += int64(n); n == 0 {
			return fmt.Errorf("offset %d: %w", at, err)
		}
	}
	return nil
}

// openImageNetTrain indexes the training archive. Its classes are the sorted wnids that name the inner archives.
func openImageNetTrain(file string, classes []string) (Set, error) {
	f, size, err := files.OpenSized(file)
	if err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	defer f.Close()
	var inner []tarMember
	err = visitTar(&blockReader{r: f}, 0, size, func(m tarMember, _ io.Reader) error {
		if path.Ext(m.name) == ".tar" {
			inner = append(inner, m)
		}
		return nil
	})
	if err == nil && len(inner) == 0 {
		err = errors.New("holds no archives of classes: want <wnid>.tar")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	slices.SortFunc(inner, func(a, b tarMember) int { return strings.Compare(wnidOf(a), wnidOf(b)) })
	found := make([]string, len(inner))
	for i, m := range inner {
		if found[i] = wnidOf(m); i > 0 && found[i] == found[i-1] {
			return nil, fmt.Errorf("%s: holds %s twice", file, m.name)
		}
	}
	all := &archive{classes: classes}
	if classes == nil {
		all.classes = found
	}
	labels, note, err := match(found, all.classes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if note != "" {
		all.note("%s: %s", file, note)
	}
	parts, err := inParallel(len(inner), func(k int) (*archive, error) {
		part, m := new(archive), inner[k]
		err := visitTar(&blockReader{r: f}, m.offset, m.size, func(image tarMember, _ io.Reader) error {
			if IsImage(image.name) {
				part.add(m.name+"/"+image.name, image.offset, image.size, labels[k])
			}
			return nil
		})
		if err == nil && len(part.labels) == 0 {
			err = errors.New("holds no images")
		}
		if err != nil {
			return nil, fmt.Errorf("%s/%s: %w", file, m.name, err)
		}
		return part, nil
	})
	if err != nil {
		return nil, err
	}
	shared := &shardFile{path: file, keep: true}
	for _, part := range parts {
		all.append(part, shared)
	}
	return verbatim{all}, nil
}

func wnidOf(m tarMember) string { return strings.TrimSuffix(path.Base(m.name), ".tar") }

// openImageNetVal indexes the validation archive, in the order of the images' numbers. Its labels are in the devkit
// in dir.
func openImageNetVal(file string, dir *listing, classes []string) (Set, error) {
	source := findDevkit(dir)
	if source == "" {
		return nil, fmt.Errorf("%s: its labels are missing: want %s beside it", file, devkitArchive)
	}
	wnids, err := readDevkit(source)
	if err != nil {
		return nil, err
	}
	f, size, err := files.OpenSized(file)
	if err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	defer f.Close()
	var images []tarMember
	err = visitTar(&blockReader{r: f}, 0, size, func(m tarMember, _ io.Reader) error {
		if IsImage(m.name) {
			images = append(images, m)
		}
		return nil
	})
	if err == nil && len(images) == 0 {
		err = errors.New("holds no images")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	slices.SortFunc(images, func(a, b tarMember) int { return strings.Compare(path.Base(a.name), path.Base(b.name)) })
	d := &archive{files: []*shardFile{{path: file, keep: true}}, first: []int{0}}
	found := make([]string, len(images))
	for i, m := range images {
		n, err := validationNumber(m.name)
		if err == nil && n > len(wnids) {
			err = fmt.Errorf("%s has %d labels only", filepath.Base(source), len(wnids))
		}
		if err != nil {
			return nil, fmt.Errorf("%s/%s: %w", file, m.name, err)
		}
		found[i] = wnids[n-1]
		d.add(m.name, m.offset, m.size, 0)
	}
	d.classes, d.labels, err = label(found, classes, &d.notes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return verbatim{d}, nil
}

// validationNumber is n of ILSVRC2012_val_n.JPEG, from 1.
func validationNumber(name string) (int, error) {
	var n int
	stem := strings.TrimSuffix(path.Base(name), path.Ext(name))
	if _, err := fmt.Sscanf(stem, "ILSVRC2012_val_%d", &n); err != nil || n < 1 {
		return 0, errors.New("not the name of a validation image: want ILSVRC2012_val_00000001.JPEG and so on")
	}
	return n, nil
}
