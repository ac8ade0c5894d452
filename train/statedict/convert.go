package statedict

import (
	"bufio"
	"fmt"
	"path/filepath"
	"strings"

	"onlinerna/internal/files"
	"onlinerna/train/safetensors"
	"onlinerna/train/torchfile"
)

// Convert writes the tensors and the metadata of a file to another one, which appears whole or not at all: safetensors, or for the endings .pt and
// .pth what torch.load takes. Values are copied bit by bit.
func Convert(dst string, f *File) error {
	if _, err := f.Verify(); err != nil {
		return err
	}
	switch {
	case IsTorch(dst):
		return toTorch(dst, f)
	case strings.EqualFold(filepath.Ext(dst), ".safetensors"):
		return toSafetensors(dst, f)
	default:
		return fmt.Errorf("%s: the ending says what to write: .safetensors, .pt or .pth", dst)
	}
}

// IsTorch says whether a name is one of files that torch.load reads.
func IsTorch(path string) bool {
	ext := strings.ToLower(filepath.Ext(path))
	return ext == ".pt" || ext == ".pth"
}

func toSafetensors(dst string, f *File) error {
	var list []safetensors.Tensor
	for _, t := range f.Tensors {
		list = append(list, safetensors.Tensor{Name: t.Name, DType: t.DType, Shape: t.Shape})
	}
	meta := map[string]string{"format": "pt"}
	for k, v := range f.Metadata {
		meta[k] = v
	}
	w, err := safetensors.Create(dst, list, meta)
	if err != nil {
		return err
	}
	defer w.Abort()
	for _, t := range f.Tensors {
		off, size := int64(0), int64(t.DType.Size())
		err := f.blocks(t, func(b []byte, at int) error {
			off = int64(at) * size
			return w.WriteAt(t.Name, b, off)
		})
		if err != nil {
			return err
		}
	}
	return w.Commit()
}

func toTorch(dst string, f *File) error {
	var list []torchfile.Tensor
	for _, t := range f.Tensors {
		list = append(list, torchfile.Tensor{Name: t.Name, DType: t.DType, Shape: t.Shape})
	}
	fd, err := files.Create(dst)
	if err != nil {
		return err
	}
	defer fd.Abort()
	w := bufio.NewWriterSize(fd, 1<<20)
	var buf []byte
	err = torchfile.Write(w, list, f.Metadata, func(t torchfile.Tensor) (b []byte, err error) {
		own, _ := f.Lookup(t.Name)
		buf, err = f.Bytes(buf[:0], own)
		return buf, err
	})
	if err == nil {
		err = w.Flush()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", dst, err)
	}
	return fd.Commit()
}
