package format

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// visitPages visits the data pages of a chunk in order; dictionary is the page before them, nil if there is none.
func visitPages(r io.ReaderAt, chunk columnChunk, visit func(p page, dictionary *page) error) error {
	at, end := chunk.start(), chunk.start()+chunk.size
	var dictionary *page
	for rows := int64(0); rows < chunk.values; {
		if at >= end {
			return fmt.Errorf("the chunk at offset %d has %d values, its pages %d", chunk.start(), chunk.values, rows)
		}
		p, err := readPage(r, at, end)
		if err != nil {
			return err
		}
		at = p.body + p.size
		switch p.kind {
		case pageDictionary:
			dictionary = &p
		case pageIndex:
		case pageData, pageDataV2:
			if rows += p.values; rows > chunk.values {
				return fmt.Errorf("page at offset %d: the chunk has %d values only", p.offset, chunk.values)
			}
			if err := visit(p, dictionary); err != nil {
				return fmt.Errorf("page at offset %d: %w", p.offset, err)
			}
		default:
			return fmt.Errorf("page at offset %d: is of the unknown kind %d", p.offset, p.kind)
		}
	}
	return nil
}

// coded is a page's values as byte strings by row, also of integers; nil for a missing value.
func (p *page) coded(r io.ReaderAt, c parquetColumn, dictionary *page) ([][]byte, error) {
	levels, b, err := p.content(r, c.codec, c.maxDef)
	if err != nil {
		return nil, err
	}
	rows, err := p.present(levels, c.maxDef)
	if err != nil {
		return nil, err
	}
	count := 0
	for _, there := range rows {
		if there {
			count++
		}
	}
	var values [][]byte
	switch {
	case p.encoding == encodingPlain:
		values, err = c.plain(b)
	case (p.encoding == encodingRLEDict || p.encoding == encodingPlainDict) && dictionary != nil:
		values, err = c.lookUp(r, dictionary, b, count)
	default:
		err = fmt.Errorf("encoding %d: only PLAIN and dictionaries can be read", p.encoding)
	}
	if err != nil {
		return nil, err
	}
	if len(values) < count {
		return nil, fmt.Errorf("%d values, want %d", len(values), count)
	}
	list := make([][]byte, len(rows))
	for i, there := range rows {
		if there {
			list[i], values = values[0], values[1:]
		}
	}
	return list, nil
}

// plain splits PLAIN values.
func (c parquetColumn) plain(b []byte) ([][]byte, error) {
	width := 8
	switch c.physical {
	case physicalByteArray:
		return byteArrays(b)
	case physicalInt32:
		width = 4
	}
	var list [][]byte
	for ; len(b) >= width; b = b[width:] {
		list = append(list, b[:width])
	}
	return list, nil
}

// lookUp decodes indices into a dictionary.
func (c parquetColumn) lookUp(r io.ReaderAt, dictionary *page, b []byte, count int) ([][]byte, error) {
	_, d, err := dictionary.content(r, c.codec, 0)
	if err != nil {
		return nil, err
	}
	words, err := c.plain(d)
	if err != nil || len(b) == 0 && count > 0 {
		return nil, errPage
	}
	if count == 0 {
		return nil, nil
	}
	indices, err := hybrid(b[1:], int(b[0]), count)
	if err != nil {
		return nil, err
	}
	list := make([][]byte, len(indices))
	for i, k := range indices {
		if k < 0 || int(k) >= len(words) {
			return nil, fmt.Errorf("index %d into a dictionary of %d", k, len(words))
		}
		list[i] = words[k]
	}
	return list, nil
}

var errMissing = errors.New("is missing (null)")

// labels reads the labels of row group g: numbers, or texts.
func (f *parquetFooter) labels(r io.ReaderAt, g int, c parquetColumn) (labels []int32, texts []string, err error) {
	chunk, err := f.chunk(g, c)
	if err != nil {
		return nil, nil, err
	}
	c.codec = chunk.codec
	err = visitPages(r, chunk, func(p page, dictionary *page) error {
		values, err := p.coded(r, c, dictionary)
		if err != nil {
			return err
		}
		for _, v := range values {
			n := int64(0)
			switch {
			case v == nil:
				return fmt.Errorf("the label of row %d of the row group %w", len(labels), errMissing)
			case c.physical == physicalByteArray:
				texts = append(texts, string(v))
			case c.physical == physicalInt32:
				n = int64(int32(binary.LittleEndian.Uint32(v)))
			default:
				n = int64(binary.LittleEndian.Uint64(v))
			}
			if n < 0 || n >= maxClasses {
				return fmt.Errorf("label %s of row %d of the row group is outside [0, %d): of images without labels "+
					"(−1) none can be read",
					strconv.FormatInt(n, 10), len(labels), maxClasses)
			}
			labels = append(labels, int32(n))
		}
		return nil
	})
	return labels, texts, err
}

// images visits the images of row group g: with their place in the file, or with a reference to a page.
func (f *parquetFooter) images(r io.ReaderAt, g int, c parquetColumn,
	visit func(k int, offset, size int64, ref *pageRef) error) (int, error) {
	chunk, err := f.chunk(g, c)
	if err != nil {
		return 0, err
	}
	c.codec = chunk.codec
	end, row := chunk.start()+chunk.size, 0
	lengths := &blockReader{r: r}
	err = visitPages(r, chunk, func(p page, dictionary *page) error {
		// A page with a checksum is read whole, so that it can be checked.
		inPlace := !p.summed && p.encoding == encodingPlain &&
			(c.codec == codecNone || p.kind == pageDataV2 && !p.packed)
		if !inPlace {
			ref := pageRef{page: p.offset, end: end, column: c}
			if dictionary != nil {
				ref.dictionary = dictionary.offset
			}
			for k := range p.values {
				ref.k = int32(k)
				one := ref
				if err := visit(row, 0, 0, &one); err != nil {
					return err
				}
				row++
			}
			return nil
		}
		return p.places(lengths, c.maxDef, func(offset, size int64) error {
			row++
			return visit(row-1, offset, size, nil)
		})
	})
	return row, err
}

// places visits the offsets and sizes of the values of an uncompressed PLAIN page; a missing value has size 0.
func (p *page) places(r io.ReaderAt, maxDef int, visit func(offset, size int64) error) error {
	at, end := p.body, p.body+p.size
	var levels []byte
	switch {
	case p.kind == pageDataV2:
		levels = make([]byte, p.defBytes)
		if _, err := r.ReadAt(levels, at+p.repBytes); len(levels) > 0 && err != nil {
			return err
		}
		at += p.repBytes + p.defBytes
	case maxDef > 0:
		var head [4]byte
		if end-at < 4 {
			return errPage
		}
		if _, err := r.ReadAt(head[:], at); err != nil {
			return err
		}
		n := int64(binary.LittleEndian.Uint32(head[:]))
		if n > end-at-4 {
			return errPage
		}
		levels = make([]byte, n)
		if _, err := r.ReadAt(levels, at+4); n > 0 && err != nil {
			return err
		}
		at += 4 + n
	}
	rows, err := p.present(levels, maxDef)
	if err != nil {
		return err
	}
	for _, there := range rows {
		if !there {
			if err := visit(at, 0); err != nil {
				return err
			}
			continue
		}
		var head [4]byte
		if end-at < 4 {
			return errPage
		}
		if _, err := r.ReadAt(head[:], at); err != nil {
			return err
		}
		n := int64(binary.LittleEndian.Uint32(head[:]))
		if n > end-at-4 {
			return errPage
		}
		if err := visit(at+4, n); err != nil {
			return err
		}
		at += 4 + n
	}
	return nil
}

// values decodes the page of ref.
func (c parquetColumn) values(r io.ReaderAt, ref pageRef) ([][]byte, error) {
	p, err := readPage(r, ref.page, ref.end)
	if err != nil {
		return nil, err
	}
	var dictionary *page
	if ref.dictionary > 0 {
		d, err := readPage(r, ref.dictionary, ref.end)
		if err != nil {
			return nil, err
		}
		dictionary = &d
	}
	values, err := p.coded(r, c, dictionary)
	if err != nil {
		return nil, fmt.Errorf("page at offset %d: %w", p.offset, err)
	}
	return values, nil
}
