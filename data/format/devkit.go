package format

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"onlinerna/internal/files"
	"onlinerna/internal/mat"
)

// ImageNet's development kit, packed or not, and its two files that give the classes of the validation images.
const (
	devkitFolder  = "ILSVRC2012_devkit_t12"
	devkitArchive = devkitFolder + ".tar.gz"
	devkitMeta    = "meta.mat"
	devkitTruth   = "ILSVRC2012_validation_ground_truth.txt"
	maxDevkit     = 64 << 20 // bytes of a file, and of the memory for its variables
)

// findDevkit is the path of the devkit in dir, "" if there is none.
func findDevkit(dir *listing) string {
	if file := dir.file(devkitArchive, strings.TrimSuffix(devkitArchive, ".gz")); file != "" {
		return file
	}
	if folder := dir.folder(devkitFolder, "devkit"); folder != "" &&
		(&listing{path: filepath.Join(folder, "data")}).file(devkitMeta) != "" {
		return folder
	}
	return ""
}

// readDevkit returns the wnids of the validation images in the order of their numbers, from 1. The ground truth's
// numbers are ILSVRC2012_IDs of meta.mat, not positions among the sorted wnids.
func readDevkit(source string) ([]string, error) {
	meta, truth, err := devkitFiles(source)
	if err == nil && (meta == nil || truth == nil) {
		err = fmt.Errorf("want data/%s and data/%s in it", devkitMeta, devkitTruth)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	byID, err := synsets(meta)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", source, devkitMeta, err)
	}
	var wnids []string
	lines := bufio.NewScanner(bytes.NewReader(truth))
	for line := 1; lines.Scan(); line++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" {
			continue
		}
		id, err := strconv.Atoi(text)
		wnid, ok := byID[id]
		if err != nil || !ok {
			return nil, fmt.Errorf("%s: %s: line %d: %q is not the ILSVRC2012_ID of a class", source, devkitTruth,
				line, text)
		}
		wnids = append(wnids, wnid)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", source, devkitTruth, err)
	}
	return wnids, nil
}

// synsets returns the wnids of the classes, the synsets without children, by ILSVRC2012_ID.
func synsets(meta []byte) (map[int]string, error) {
	list, err := mat.Read(bytes.NewReader(meta), maxDevkit)
	if err != nil {
		return nil, err
	}
	for _, a := range list {
		if a.Name != "synsets" || a.Class != mat.Struct {
			continue
		}
		byID := map[int]string{}
		for i := range a.Values {
			id, wnid, children := a.Field(i, "ILSVRC2012_ID"), a.Field(i, "WNID"), a.Field(i, "num_children")
			if id == nil || wnid == nil || children == nil || len(id.Real) != 1 || len(children.Real) != 1 ||
				wnid.Text == "" {
				return nil, errors.New("synsets: want the fields ILSVRC2012_ID, WNID and num_children")
			}
			if children.Real[0] > 0 {
				continue
			}
			if _, ok := byID[int(id.Real[0])]; ok {
				return nil, fmt.Errorf("synsets: two classes have the ILSVRC2012_ID %g", id.Real[0])
			}
			byID[int(id.Real[0])] = wnid.Text
		}
		return byID, nil
	}
	return nil, errors.New("holds no struct array synsets")
}

// devkitFiles reads the two files from a folder or an archive; a missing one is nil.
func devkitFiles(source string) (meta, truth []byte, err error) {
	if info, err := os.Stat(source); err == nil && info.IsDir() {
		if meta, err = files.ReadAtMost(filepath.Join(source, "data", devkitMeta), maxDevkit); err == nil {
			truth, err = files.ReadAtMost(filepath.Join(source, "data", devkitTruth), maxDevkit)
		}
		return meta, truth, err
	}
	f, err := files.Open(source)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	var r io.Reader = bufio.NewReader(f)
	if strings.HasSuffix(source, ".gz") {
		if r, err = gzip.NewReader(r); err != nil {
			return nil, nil, err
		}
	}
	archive := tar.NewReader(r)
	for meta == nil || truth == nil {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, nil, fmt.Errorf("cut short or damaged: %w", err)
		}
		into := map[string]*[]byte{devkitMeta: &meta, devkitTruth: &truth}[path.Base(header.Name)]
		if into == nil || header.Typeflag != tar.TypeReg {
			continue
		}
		if header.Size > maxDevkit {
			return nil, nil, fmt.Errorf("%s has %d bytes, more than %d", header.Name, header.Size, maxDevkit)
		}
		if *into, err = io.ReadAll(archive); err != nil {
			return nil, nil, fmt.Errorf("%s: cut short or damaged: %w", header.Name, err)
		}
	}
	return meta, truth, nil
}
