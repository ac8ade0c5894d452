package statedict

import (
	"compress/gzip"
	"compress/zlib"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"

	"onlinerna/internal/ocdbt"
	"onlinerna/train/safetensors"
)

// Bounds of an array.
const (
	maxZarr       = 1 << 20   // bytes of metadata
	maxZarrIndex  = 64 << 20  // bytes of a shard's index
	maxZstdWindow = 128 << 20 // of Zstandard's highest level
)

// zarrTypes are the element types of version 3 by name, and those of version 2 that are not numpy's.
var zarrTypes = map[string]safetensors.DType{
	"float64": safetensors.F64, "float32": safetensors.F32, "float16": safetensors.F16, "bfloat16": safetensors.BF16,
	"int64": safetensors.I64, "int32": safetensors.I32, "int16": "I16", "int8": "I8",
	"uint64": "U64", "uint32": "U32", "uint16": "U16", "uint8": "U8", "bool": "BOOL", "complex64": "C64",
	"float8_e4m3fn": safetensors.F8E4M3, "float8_e5m2": safetensors.F8E5M2, "float8_e8m0fnu": "F8_E8M0",
}

// zarrArray is the metadata of an array.
type zarrArray struct {
	dtype        safetensors.DType
	shape, chunk []int
	fortran      bool
	key          func(at []int) string // of a chunk, behind the array's name
	codec        string                // empty for plain elements
	inner        []int                 // chunks within a chunk, nil for none
	sealed       bool                  // whether the index of the chunks within has a checksum
	first        bool                  // whether that index is in front of them
}

type zarrCodec struct {
	Name          string `json:"name"`
	Configuration struct {
		Endian string      `json:"endian"`
		Chunk  []int       `json:"chunk_shape"`
		Codecs []zarrCodec `json:"codecs"`
		Index  []zarrCodec `json:"index_codecs"`
		At     string      `json:"index_location"`
	} `json:"configuration"`
}

// zarr2 reads the metadata .zarray.
func zarr2(b []byte) (*zarrArray, error) {
	var m struct {
		Format     int               `json:"zarr_format"`
		Type       any               `json:"dtype"`
		Shape      []int             `json:"shape"`
		Chunks     []int             `json:"chunks"`
		Order      string            `json:"order"`
		Separator  string            `json:"dimension_separator"`
		Filters    []json.RawMessage `json:"filters"`
		Compressor *struct {
			ID string `json:"id"`
		} `json:"compressor"`
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, fmt.Errorf(".zarray: %w", err)
	}
	name, _ := m.Type.(string)
	a := &zarrArray{dtype: numpyTypes[name], shape: m.Shape, chunk: m.Chunks, fortran: m.Order == "F"}
	if a.dtype == "" {
		a.dtype = zarrTypes[name]
	}
	sep := "."
	switch {
	case m.Format != 2:
		return nil, fmt.Errorf(".zarray of format %d: 2 is read", m.Format)
	case a.dtype == "":
		return nil, fmt.Errorf("elements of type %.50q: little-endian numbers are read", fmt.Sprint(m.Type))
	case m.Order != "C" && m.Order != "F":
		return nil, fmt.Errorf("order %.50q", m.Order)
	case len(m.Filters) > 0:
		return nil, errors.New("it is filtered: save it without filters")
	case m.Separator == "/":
		sep = "/"
	case m.Separator != "" && m.Separator != ".":
		return nil, fmt.Errorf("dimension_separator %.50q", m.Separator)
	}
	if m.Compressor != nil {
		if a.codec = m.Compressor.ID; !slices.Contains(zarrCodecs, a.codec) {
			return nil, fmt.Errorf("it is compressed by %.50q: %s are read", a.codec, strings.Join(zarrCodecs, ", "))
		}
	}
	a.key = func(at []int) string {
		if len(at) == 0 {
			return "0"
		}
		return joined(at, sep)
	}
	return a, nil
}

// zarr3 reads the metadata zarr.json.
func zarr3(b []byte) (*zarrArray, error) {
	var m struct {
		Format int    `json:"zarr_format"`
		Node   string `json:"node_type"`
		Type   any    `json:"data_type"`
		Shape  []int  `json:"shape"`
		Grid   struct {
			Name          string `json:"name"`
			Configuration struct {
				Shape []int `json:"chunk_shape"`
			} `json:"configuration"`
		} `json:"chunk_grid"`
		Keys struct {
			Name          string `json:"name"`
			Configuration struct {
				Separator string `json:"separator"`
			} `json:"configuration"`
		} `json:"chunk_key_encoding"`
		Codecs []zarrCodec `json:"codecs"`
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, fmt.Errorf("zarr.json: %w", err)
	}
	name, _ := m.Type.(string)
	a := &zarrArray{dtype: zarrTypes[name], shape: m.Shape, chunk: m.Grid.Configuration.Shape}
	front, sep := "c", "/"
	switch {
	case m.Format != 3 || m.Node != "array":
		return nil, fmt.Errorf("zarr.json of format %d, %.50q: arrays of format 3 are read", m.Format, m.Node)
	case a.dtype == "":
		return nil, fmt.Errorf("elements of type %.50q, which is not known", fmt.Sprint(m.Type))
	case m.Grid.Name != "regular":
		return nil, fmt.Errorf("chunk_grid %.50q: regular is read", m.Grid.Name)
	case m.Keys.Name == "v2":
		front, sep = "", "."
	case m.Keys.Name != "default":
		return nil, fmt.Errorf("chunk_key_encoding %.50q: default and v2 are read", m.Keys.Name)
	}
	switch s := m.Keys.Configuration.Separator; s {
	case "":
	case ".", "/":
		sep = s
	default:
		return nil, fmt.Errorf("separator %.50q", s)
	}
	codecs := m.Codecs
	if len(codecs) == 1 && codecs[0].Name == "sharding_indexed" {
		c := codecs[0].Configuration
		a.inner, codecs, a.first = c.Chunk, c.Codecs, c.At == "start"
		switch {
		case a.inner == nil || c.At != "" && c.At != "start" && c.At != "end":
			return nil, fmt.Errorf("sharding_indexed: chunks %v, index at %.50q", a.inner, c.At)
		case len(c.Index) == 2 && c.Index[1].Name == "crc32c":
			a.sealed = true
		case len(c.Index) != 1:
			return nil, errors.New("sharding_indexed: index_codecs: bytes and crc32c are read")
		}
		if e := c.Index[0]; e.Name != "bytes" || e.Configuration.Endian != "little" {
			return nil, errors.New("sharding_indexed: index_codecs: little-endian numbers are read")
		}
	}
	if len(codecs) == 0 || codecs[0].Name != "bytes" || codecs[0].Configuration.Endian == "big" {
		return nil, errors.New("codecs: plain or sharded little-endian bytes are read")
	}
	if codecs = codecs[1:]; len(codecs) > 0 {
		a.codec = codecs[0].Name
		if len(codecs) > 1 || !slices.Contains(zarrCodecs, a.codec) {
			return nil, fmt.Errorf("codec %.50q: one of %s is read", codecs[len(codecs)-1].Name, strings.Join(zarrCodecs, ", "))
		}
	}
	a.key = func(at []int) string {
		switch k := joined(at, sep); {
		case front == "" && k == "":
			return "0"
		case front == "" || k == "":
			return front + k
		default:
			return front + sep + k
		}
	}
	return a, nil
}

func joined(at []int, sep string) string {
	var s []byte
	for i, v := range at {
		if i > 0 {
			s = append(s, sep...)
		}
		s = strconv.AppendInt(s, int64(v), 10)
	}
	return string(s)
}

// tensor finds the chunks of an array.
func (s *zarrStore) tensor(name string) (Tensor, error) {
	t := Tensor{Name: name}
	read := zarr2
	meta, ok := s.values[name+"/.zarray"]
	if !ok {
		read = zarr3
		meta = s.values[name+"/zarr.json"]
	}
	b, err := s.bytes(meta, maxZarr)
	if err != nil {
		return t, err
	}
	a, err := read(b)
	if err != nil {
		return t, err
	}
	t.DType = a.dtype
	if t.Shape = a.shape; t.Shape == nil {
		t.Shape = []int{}
	}
	if err := safetensors.Check(t.DType, t.Shape); err != nil {
		return t, err
	}
	grid, err := s.grid(t.DType, t.Shape, a.chunk)
	if err != nil {
		return t, err
	}
	inner := a.inner
	if inner == nil {
		inner = a.chunk
	}
	within, err := s.grid(t.DType, a.chunk, inner)
	for i, d := range a.chunk {
		if err == nil && a.inner != nil && d%inner[i] != 0 {
			err = fmt.Errorf("chunks of %v in chunks of %v", inner, a.chunk)
		}
	}
	if err != nil {
		return t, err
	}
	if product(t.Shape) == 0 {
		t.pieces = []piece{{}}
		return t, nil
	}
	unit := int64(t.DType.Size())
	return t, each(grid, func(k []int) error {
		key := name + "/" + a.key(k)
		v, ok := s.values[key]
		if !ok {
			return fmt.Errorf("%s is missing", key)
		}
		at := make([]int, len(k))
		for i := range k {
			at[i] = k[i] * a.chunk[i]
		}
		if a.inner == nil {
			return s.chunk(&t, a, at, a.chunk, v, unit)
		}
		return s.shard(&t, a, at, within, v, unit)
	})
}

// grid is the number of chunks in each dimension; their number is bounded over all arrays.
func (s *zarrStore) grid(dtype safetensors.DType, shape, chunk []int) ([]int, error) {
	if len(chunk) != len(shape) {
		return nil, fmt.Errorf("chunks of shape %v of an array of shape %v", chunk, shape)
	}
	if err := safetensors.Check(dtype, chunk); err != nil {
		return nil, fmt.Errorf("chunks: %w", err)
	}
	grid, n := make([]int, len(shape)), 1
	for i, d := range shape {
		if chunk[i] <= 0 {
			return nil, fmt.Errorf("chunks of shape %v", chunk)
		}
		grid[i] = d / chunk[i]
		if d%chunk[i] > 0 {
			grid[i]++
		}
		if n *= grid[i]; n > maxParts {
			return nil, fmt.Errorf("more than %d chunks of shape %v", maxParts, chunk)
		}
	}
	return grid, nil
}

// shard finds the inner chunks of a chunk through the index in it.
func (s *zarrStore) shard(t *Tensor, a *zarrArray, at, within []int, v ocdbt.Entry, unit int64) error {
	n := int64(product(within)) * 16
	size := n
	if a.sealed {
		size += 4
	}
	if size > maxZarrIndex || size > v.Len {
		return fmt.Errorf("%s of %d bytes has an index of %d", v.Key, v.Len, size)
	}
	r, err := s.reader(v)
	if err != nil {
		return err
	}
	index, from := make([]byte, size), v.Len-size
	if a.first {
		from = 0
	}
	if _, err := r.ReadAt(index, from); err != nil && err != io.EOF {
		return err
	}
	if a.sealed && crc32.Checksum(index[:n], crc32.MakeTable(crc32.Castagnoli)) != binary.LittleEndian.Uint32(index[n:]) {
		return fmt.Errorf("%s is damaged: the checksum of its index differs", v.Key)
	}
	return each(within, func(k []int) error {
		off, length := binary.LittleEndian.Uint64(index), binary.LittleEndian.Uint64(index[8:])
		index = index[16:]
		own := make([]int, len(k))
		for i := range k {
			if own[i] = at[i] + k[i]*a.inner[i]; own[i] >= t.Shape[i] {
				return nil // behind the end of the array
			}
		}
		switch {
		case off == math.MaxUint64 && length == math.MaxUint64:
			return fmt.Errorf("%s: the chunk at %v is missing", v.Key, own)
		case off > uint64(v.Len) || length > uint64(v.Len)-off:
			return fmt.Errorf("%s of %d bytes: the chunk at %v has %d bytes at %d", v.Key, v.Len, own, length, off)
		}
		c := ocdbt.Entry{Key: v.Key, File: v.File, Off: v.Off + int64(off), Len: int64(length)}
		if v.File == "" {
			c.Inline = v.Inline[off : off+length]
		}
		return s.chunk(t, a, own, a.inner, c, unit)
	})
}

// chunk adds a chunk's piece. Chunks at the ends have their full size in the file.
func (s *zarrStore) chunk(t *Tensor, a *zarrArray, at, chunk []int, v ocdbt.Entry, unit int64) error {
	if s.chunks++; s.chunks > maxParts {
		return fmt.Errorf("more than %d chunks in all arrays", maxParts)
	}
	size := slices.Clone(chunk)
	for i := range size {
		size[i] = min(size[i], t.Shape[i]-at[i])
	}
	p := piece{at: at, size: size, off: v.Off}
	if a.fortran && len(chunk) > 1 {
		turned := slices.Clone(chunk)
		slices.Reverse(turned)
		p.strides = strides(turned)
		slices.Reverse(p.strides)
	} else if len(size) > 1 && !slices.Equal(size[1:], chunk[1:]) {
		p.strides = strides(chunk)
	}
	bytes := int64(product(chunk)) * unit
	plain := a.codec == ""
	if plain && v.Len != bytes {
		return fmt.Errorf("%s: the chunk at %v has %d bytes, want %d", v.Key, at, v.Len, bytes)
	}
	if v.File != "" {
		var err error
		if p.file, err = s.number(v); err != nil {
			return err
		}
	}
	if !plain || v.File == "" {
		s.jobs = append(s.jobs, zarrJob{tensor: len(s.file.Tensors), piece: len(t.pieces), value: v, codec: a.codec,
			size: bytes})
	}
	t.pieces = append(t.pieces, p)
	return nil
}

// zarrCodecs are the supported compressors.
var zarrCodecs = []string{"zstd", "gzip", "zlib"}

// later makes the chunks that have to be decompressed pieces of the temporary file, where any element can be read.
func (s *zarrStore) later() error {
	// A decoder may take two windows.
	decoders := make(chan *zstd.Decoder, min(runtime.GOMAXPROCS(0), 4))
	for range cap(decoders) {
		decoders <- nil
	}
	for _, j := range s.jobs {
		t := &s.file.Tensors[j.tensor]
		if most := int64(maxRatio[j.codec]); j.size > (j.value.Len+1)*most {
			return fmt.Errorf("%s: tensor %q: %s: %d bytes cannot be %d when they are inflated", s.dir, t.Name, j.value.Key,
				j.value.Len, j.size)
		}
		err := s.file.later(&t.pieces[j.piece], j.size, func(to io.Writer) (err error) {
			d := <-decoders
			defer func() { decoders <- d }()
			if d == nil {
				d, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
					zstd.WithDecoderMaxWindow(maxZstdWindow))
			}
			if err == nil {
				err = s.inflate(to, d, j)
			}
			if err != nil {
				err = fmt.Errorf("%s: %w", j.value.Key, err)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// maxRatio are bounds of the bytes that one becomes; a block of 128 KB of Zstandard may be 4 bytes.
var maxRatio = map[string]int{"": 1, "gzip": maxDeflate, "zlib": maxDeflate, "zstd": 1 << 15}

// inflate decompresses a chunk. It changes nothing in s.
func (s *zarrStore) inflate(to io.Writer, d *zstd.Decoder, j zarrJob) error {
	at, err := s.reader(j.value)
	if err != nil {
		return err
	}
	in := io.NewSectionReader(at, 0, j.value.Len)
	var out io.Reader = in
	switch j.codec {
	case "zstd":
		err = d.Reset(in)
		out = d
	case "gzip":
		out, err = gzip.NewReader(in)
	case "zlib":
		out, err = zlib.NewReader(in)
	}
	if err != nil {
		return err
	}
	n, err := io.Copy(to, io.LimitReader(out, j.size+1)) // to the end, where checksums are
	if err == nil && n != j.size {
		err = fmt.Errorf("%d bytes or more of numbers, want %d", n, j.size)
	}
	return err
}
