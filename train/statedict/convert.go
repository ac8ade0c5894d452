package statedict

import (
	"fmt"
	"maps"
	"path/filepath"
	"strings"

	"onlinerna/internal/files"
	"onlinerna/train/safetensors"
	"onlinerna/train/torchfile"
)

// Convert writes the tensors and the metadata of a file to another one, atomically: safetensors, or torch.load's format
// for the endings .pt and .pth. Values are copied bit by bit.
func Convert(dst string, f *File) error { return ConvertWith(dst, f, nil) }

// ConvertWith is [Convert]. done, unless it is nil, receives the bytes that were read since its last call, once to
// verify them and once to copy them. Its error ends the work, and nothing is written.
func ConvertWith(dst string, f *File, done func(bytes int64) error) error {
	if done == nil {
		done = func(int64) error { return nil }
	}
	if err := f.CheckOutput(dst); err != nil {
		return err
	}
	if _, err := f.VerifyWith(done); err != nil {
		return err
	}
	w, err := Create(dst, f.Tensors, f.Metadata)
	if err != nil {
		return err
	}
	defer w.Abort()
	for _, t := range f.Tensors {
		size := int64(t.DType.Size())
		err := f.blocks(t, func(b []byte, at int) error {
			if err := done(int64(len(b))); err != nil {
				return err
			}
			return w.WriteAt(t.Name, b, int64(at)*size)
		})
		if err != nil {
			return err
		}
	}
	return w.Commit()
}

// IsTorch reports whether a file name has an ending of torch.load's format.
func IsTorch(path string) bool {
	ext := strings.ToLower(filepath.Ext(path))
	return ext == ".pt" || ext == ".pth"
}

// Writer writes a file of tensors, which appears complete at Commit or not at all. WriteAt writes little-endian bytes
// of a tensor from its byte off on, in any order, from several goroutines.
type Writer interface {
	WriteAt(name string, b []byte, off int64) error
	Commit() error
	CommitUnsynced() error
	Abort()

	// Unfinished is the name of the file in the making, for [Join] by other processes. Leave ends a part of theirs, and
	// returns its checksums, which the process that began the file takes before it commits.
	Unfinished() string
	Leave(sync bool) (part []byte, err error)
	Take(part []byte)
}

// Create starts a file in the format of its ending: .safetensors, or .pt and .pth for torch.load's. It removes
// temporary files of killed writers of the same file.
func Create(dst string, tensors []Tensor, metadata map[string]string) (Writer, error) {
	if err := files.RemoveDead(dst); err != nil {
		return nil, err
	}
	return start(dst, "", tensors, metadata)
}

// Join begins a part of a file that another process has created with the same tensors and metadata.
func Join(dst, unfinished string, tensors []Tensor, metadata map[string]string) (Writer, error) {
	return start(dst, unfinished, tensors, metadata)
}

// start creates a file, or joins an unfinished one.
func start(dst, unfinished string, tensors []Tensor, metadata map[string]string) (Writer, error) {
	switch {
	case strings.EqualFold(filepath.Ext(dst), ".safetensors"):
		var list []safetensors.Tensor
		for _, t := range tensors {
			list = append(list, safetensors.Tensor{Name: t.Name, DType: t.DType, Shape: t.Shape})
		}
		meta := map[string]string{"format": "pt"}
		maps.Copy(meta, metadata)
		if unfinished != "" {
			return safetensors.Join(dst, unfinished, list, meta)
		}
		return safetensors.Create(dst, list, meta)
	case IsTorch(dst):
		var list []torchfile.Tensor
		for _, t := range tensors {
			list = append(list, torchfile.Tensor{Name: t.Name, DType: t.DType, Shape: t.Shape})
		}
		if unfinished != "" {
			return torchfile.Join(dst, unfinished, list, metadata)
		}
		return torchfile.Create(dst, list, metadata)
	}
	return nil, fmt.Errorf("%s: the ending must name the format: .safetensors, .pt or .pth", dst)
}
