package torchfile

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"math"

	"onlinerna/internal/pickle"
	"onlinerna/train/safetensors"
)

// metadataEntry of an archive holds the metadata. PyTorch passes it over.
const metadataEntry = "extra/metadata.json"

// root is the folder of the archive, as torch.save calls it for a stream.
const root = "archive/"

// storageAlign is the alignment of storages, as torch.save has it.
const storageAlign = 64

// Write writes a state dict as torch.save does, one that torch.load takes with weights_only=True: an OrderedDict of the tensors, which are
// contiguous and have a storage each. elements returns the bytes of a tensor, little-endian; they are used up to the next call. Offset and
// Strides of the tensors are not looked at. Metadata, if there is any, lies beside, for Read.
func Write(w io.Writer, tensors []Tensor, metadata map[string]string, elements func(Tensor) ([]byte, error)) error {
	p, err := pickled(tensors)
	if err != nil {
		return err
	}
	z := &zipWriter{w: zip.NewWriter(w)}
	if err := z.add("data.pkl", p); err != nil {
		return err
	}
	if err := z.add("byteorder", []byte("little")); err != nil {
		return err
	}
	if len(metadata) > 0 {
		b, err := json.Marshal(metadata)
		if err != nil {
			return err
		}
		if err := z.add(metadataEntry, b); err != nil {
			return err
		}
	}
	for i, t := range tensors {
		b, err := elements(t)
		if err != nil {
			return err
		}
		if n := length(t.Shape) * t.DType.Size(); len(b) != n {
			return fmt.Errorf("tensor %q: %d bytes in place of %d", t.Name, len(b), n)
		}
		if err := z.add(fmt.Sprintf("data/%d", i), b); err != nil {
			return err
		}
	}
	if err := z.add("version", []byte("3\n")); err != nil {
		return err
	}
	return z.w.Close()
}

func length(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// zipWriter writes entries as they are, each from a multiple of storageAlign on.
type zipWriter struct {
	w  *zip.Writer
	at int64
}

func (z *zipWriter) add(name string, b []byte) error {
	h := &zip.FileHeader{Name: root + name, Method: zip.Store, CRC32: crc32.ChecksumIEEE(b),
		CompressedSize64: uint64(len(b)), UncompressedSize64: uint64(len(b))}
	head := z.at + headerLen + int64(len(h.Name))
	pad := int((storageAlign - (head+4)%storageAlign) % storageAlign)
	h.Extra = append([]byte("FB"), byte(pad), byte(pad>>8)) // as torch.save pads
	h.Extra = append(h.Extra, bytes.Repeat([]byte("Z"), pad)...)
	if len(b) >= math.MaxUint32 {
		return fmt.Errorf("%s: %d bytes are too many for a tensor", name, len(b))
	}
	w, err := z.w.CreateRaw(h)
	if err != nil {
		return err
	}
	z.at = head + int64(len(h.Extra)) + int64(len(b))
	_, err = w.Write(b)
	return err
}

// classes gives the class of storage of each element type.
var classes = func() map[safetensors.DType]pickle.Global {
	m := map[safetensors.DType]pickle.Global{}
	for class, t := range storages {
		m[t] = class
	}
	return m
}()

// pickled is the pickle, of protocol 2, of an OrderedDict of tensors with storages "0", "1", ….
func pickled(tensors []Tensor) ([]byte, error) {
	p := &pickler{}
	p.raw("\x80\x02")
	p.global("collections.OrderedDict")
	p.raw(")R(")
	for i, t := range tensors {
		class, ok := classes[t.DType]
		if !ok {
			return nil, fmt.Errorf("tensor %q: torch.save has no elements of type %s", t.Name, t.DType)
		}
		p.text(t.Name)
		p.global("torch._utils._rebuild_tensor_v2")
		p.raw("((")
		p.text("storage")
		p.global(class)
		p.text(fmt.Sprint(i))
		p.text("cpu")
		p.integer(length(t.Shape))
		p.raw("tQ")
		p.integer(0)
		p.tuple(t.Shape)
		strides := make([]int, len(t.Shape))
		for k, n := len(strides)-1, 1; k >= 0; k-- {
			strides[k], n = n, n*max(t.Shape[k], 1)
		}
		p.tuple(strides)
		p.raw("\x89") // no gradient
		p.global("collections.OrderedDict")
		p.raw(")RtR")
	}
	p.raw("u.")
	return p.b, nil
}

type pickler struct{ b []byte }

func (p *pickler) raw(s string) { p.b = append(p.b, s...) }

func (p *pickler) global(g pickle.Global) {
	i := bytes.LastIndexByte([]byte(g), '.')
	p.raw("c" + string(g[:i]) + "\n" + string(g[i+1:]) + "\n")
}

func (p *pickler) text(s string) {
	p.b = binary.LittleEndian.AppendUint32(append(p.b, 'X'), uint32(len(s)))
	p.raw(s)
}

func (p *pickler) integer(n int) {
	if n <= math.MaxInt32 {
		p.b = binary.LittleEndian.AppendUint32(append(p.b, 'J'), uint32(n))
		return
	}
	p.b = binary.LittleEndian.AppendUint64(append(p.b, 0x8a, 8), uint64(n))
}

func (p *pickler) tuple(list []int) {
	p.raw("(")
	for _, n := range list {
		p.integer(n)
	}
	p.raw("t")
}
