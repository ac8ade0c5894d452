package format

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
)

// page is a page of a column chunk.
type page struct {
	kind           int64
	offset         int64 // of the header
	body           int64 // of the content
	size, unpacked int64 // of the content as it lies in the file, and after decompression
	values         int64
	encoding       int64
	defBytes       int64 // v2: of the levels, which are not compressed
	repBytes       int64
	packed         bool // v2: whether the values are compressed
	summed         bool // crc is the CRC-32 of the content as it lies in the file
	crc            uint32
}

var errPage = errors.New("a page is damaged")

// readPage reads the header of the page at offset of a chunk of column c that goes to end and has at most the given
// number of values.
func readPage(r io.ReaderAt, c *parquetColumn, offset, end, most int64) (page, error) {
	for n := int64(firstHeaderRead); ; n *= 8 {
		b := make([]byte, min(n, end-offset))
		if m, err := r.ReadAt(b, offset); m < len(b) {
			return page{}, fmt.Errorf("page at offset %d: %w", offset, err)
		}
		t := &thrift{b: b}
		p := readPageHeader(t)
		if t.err == errThriftEnd && n < maxHeader && n < end-offset {
			continue
		}
		if t.err != nil {
			return p, fmt.Errorf("page at offset %d: %w", offset, t.err)
		}
		p.offset, p.body = offset, offset+int64(t.p)
		// Each number is bounded before it is added to another.
		if p.values < 0 || p.values > most {
			return p, fmt.Errorf("page at offset %d: claims %d values, its chunk has %d", offset, p.values, most)
		}
		if least := min(p.size, p.unpacked); p.size < 0 || p.size > end-p.body || p.unpacked < 0 ||
			p.unpacked > c.limit(p.values) || p.defBytes < 0 || p.defBytes > least || p.repBytes < 0 ||
			p.repBytes > least-p.defBytes {
			return p, fmt.Errorf("page at offset %d: claims %d values in %d bytes (%d unpacked), of which the chunk "+
				"has %d", offset, p.values, p.size, p.unpacked, end-p.body)
		}
		return p, nil
	}
}

func readPageHeader(t *thrift) page {
	p := page{kind: -1, packed: true}
	integers := func(into map[int]*int64) {
		t.structure(func(id int, kind byte) bool {
			if id == 7 && (kind == thriftTrue || kind == thriftFalse) {
				p.packed = kind == thriftTrue
				return true
			}
			if into[id] == nil || kind != thriftInt32 {
				return false
			}
			*into[id] = t.integer()
			return true
		})
	}
	t.structure(func(id int, kind byte) bool {
		switch {
		case id == 1 && kind == thriftInt32:
			p.kind = t.integer()
		case id == 2 && kind == thriftInt32:
			p.unpacked = t.integer()
		case id == 3 && kind == thriftInt32:
			p.size = t.integer()
		case id == 4 && kind == thriftInt32:
			p.summed, p.crc = true, uint32(t.integer())
		case (id == 5 || id == 7) && kind == thriftStruct:
			integers(map[int]*int64{1: &p.values, 2: &p.encoding})
		case id == 8 && kind == thriftStruct:
			integers(map[int]*int64{1: &p.values, 4: &p.encoding, 5: &p.defBytes, 6: &p.repBytes})
		default:
			return false
		}
		return true
	})
	return p
}

// decompressors by codec.
var decompressors = map[int64]func(b []byte, size int64) ([]byte, error){
	1: func(b []byte, size int64) ([]byte, error) {
		if n, err := snappy.DecodedLen(b); err != nil || int64(n) != size {
			return nil, errPage
		}
		return snappy.Decode(nil, b)
	},
	2: func(b []byte, size int64) ([]byte, error) {
		r, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			return nil, err
		}
		into := bytes.NewBuffer(make([]byte, 0, min(size, 64*int64(len(b)))+bytes.MinRead))
		_, err = into.ReadFrom(io.LimitReader(r, size+1))
		return into.Bytes(), err
	},
	6: func(b []byte, size int64) ([]byte, error) {
		r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(max(size, 1<<20))))
		if err != nil {
			return nil, err
		}
		defer r.Close()
		return r.DecodeAll(b, nil)
	},
}

// content reads a page of column c, decompresses it and returns its repetition levels, nil without lists, its
// definition levels, nil if no value can be missing, and the encoded values.
func (p *page) content(r io.ReaderAt, c *parquetColumn) (reps, levels, values []byte, err error) {
	b := make([]byte, p.size)
	if n, err := r.ReadAt(b, p.body); n < len(b) {
		return nil, nil, nil, err
	}
	if p.summed && crc32.ChecksumIEEE(b) != p.crc {
		return nil, nil, nil, fmt.Errorf("page at offset %d: does not match its checksum: damaged", p.offset)
	}
	if c.codec != codecNone && p.packed {
		head := int(p.defBytes + p.repBytes)
		unpacked, err := decompressors[c.codec](b[head:], p.unpacked-int64(head))
		if err != nil {
			return nil, nil, nil, fmt.Errorf("page at offset %d: %w", p.offset, err)
		}
		if int64(len(unpacked)) != p.unpacked-int64(head) {
			return nil, nil, nil, fmt.Errorf("page at offset %d: %d bytes after decompression, want %d", p.offset,
				len(unpacked), p.unpacked-int64(head))
		}
		if p.kind == pageDataV2 { // levels are not compressed
			return b[:p.repBytes], b[p.repBytes:head], unpacked, nil
		}
		b = unpacked
	}
	reps, levels, values, ok := p.split(b, c)
	if !ok {
		return nil, nil, nil, fmt.Errorf("page at offset %d: %w", p.offset, errPage)
	}
	return reps, levels, values, nil
}

// split separates the levels from the values.
func (p *page) split(b []byte, c *parquetColumn) (reps, levels, values []byte, ok bool) {
	if p.kind == pageDataV2 {
		return b[:p.repBytes], b[p.repBytes : p.repBytes+p.defBytes], b[p.repBytes+p.defBytes:], true
	}
	if p.kind == pageDictionary {
		return nil, nil, b, true
	}
	ok = true
	sized := func(levels int) []byte { // behind their length
		if levels == 0 || !ok {
			return nil
		}
		if len(b) < 4 || uint64(binary.LittleEndian.Uint32(b)) > uint64(len(b)-4) {
			ok = false
			return nil
		}
		n := binary.LittleEndian.Uint32(b)
		part := b[4 : 4+n]
		b = b[4+n:]
		return part
	}
	reps = sized(c.maxRep)
	levels = sized(c.maxDef)
	return reps, levels, b, ok
}

// hybrid decodes n numbers of the given width in parquet's mix of runs and bit packing.
func hybrid(b []byte, width, n int) ([]int32, error) {
	if width > 32 {
		return nil, errPage
	}
	list := make([]int32, 0, n)
	for len(list) < n {
		head, k := binary.Uvarint(b)
		if k <= 0 {
			return nil, errPage
		}
		b = b[k:]
		left := n - len(list)
		if head&1 == 0 { // a run
			size := (width + 7) / 8
			if len(b) < size || head>>1 == 0 {
				return nil, errPage
			}
			v := int32(0)
			for i := range size {
				v |= int32(b[i]) << (8 * i)
			}
			b = b[size:]
			for range min(head>>1, uint64(left)) {
				list = append(list, v)
			}
			continue
		}
		if head>>1 == 0 || head>>1 > uint64(maxPage) {
			return nil, errPage
		}
		count := int(head>>1) * 8
		size := int(head>>1) * width
		if len(b) < size {
			if size = len(b); size*8 < min(count, left)*width { // the last group may be truncated to the values needed
				return nil, errPage
			}
		}
		for i := range min(count, left) {
			v := uint64(0)
			for bit := i * width; bit < (i+1)*width; {
				take := min(8-bit%8, (i+1)*width-bit)
				v |= uint64(b[bit/8]>>(bit%8)&(1<<take-1)) << (bit - i*width)
				bit += take
			}
			list = append(list, int32(v))
		}
		b = b[size:]
	}
	return list, nil
}

// bitWidth is the number of bits that v takes.
func bitWidth(v int) int {
	n := 0
	for ; v > 0; v >>= 1 {
		n++
	}
	return n
}

// present tells for each row of a page whether it has a value.
func (p *page) present(levels []byte, maxDef int) ([]bool, error) {
	rows := make([]bool, 0, p.values)
	if maxDef == 0 {
		for range p.values {
			rows = append(rows, true)
		}
		return rows, nil
	}
	list, err := hybrid(levels, bitWidth(maxDef), int(p.values))
	if err != nil {
		return nil, err
	}
	for _, v := range list {
		rows = append(rows, int(v) == maxDef)
	}
	return rows, nil
}

// byteArrays splits off n PLAIN byte arrays.
func byteArrays(b []byte, n int) ([][]byte, error) {
	list := make([][]byte, 0, min(n, len(b)/4))
	for len(list) < n {
		if len(b) < 4 {
			return nil, errPage
		}
		size := binary.LittleEndian.Uint32(b)
		if uint64(size) > uint64(len(b)-4) {
			return nil, errPage
		}
		list = append(list, b[4:4+size:4+size])
		b = b[4+size:]
	}
	return list, nil
}
