package format

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// visitPages visits the data pages of a chunk of column c in order; dictionary is the page before them, nil if there is
// none.
func visitPages(r io.ReaderAt, c *parquetColumn, chunk columnChunk, visit func(p page, dictionary *page) error) error {
	at, end := chunk.start(), chunk.start()+chunk.size
	var dictionary *page
	for rows := int64(0); rows < chunk.values; {
		if at >= end {
			return fmt.Errorf("the chunk at offset %d has %d values, its pages %d", chunk.start(), chunk.values, rows)
		}
		p, err := readPage(r, c, at, end, chunk.values)
		if err != nil {
			return err
		}
		at = p.body + p.size
		switch p.kind {
		case pageDictionary:
			dictionary = &p
		case pageIndex:
		case pageData, pageDataV2:
			if p.values > chunk.values-rows {
				return fmt.Errorf("page at offset %d: the chunk has %d values only", p.offset, chunk.values)
			}
			rows += p.values
			if err := visit(p, dictionary); err != nil {
				return fmt.Errorf("page at offset %d: %w", p.offset, err)
			}
		default:
			return fmt.Errorf("page at offset %d: is of the unknown kind %d", p.offset, p.kind)
		}
	}
	return nil
}

// words are the values of the dictionary that was decoded last.
type words struct {
	page int64 // offset
	list [][]byte
}

// of decodes a dictionary unless it is the last one decoded.
func (w *words) of(r io.ReaderAt, c *parquetColumn, dictionary *page) ([][]byte, error) {
	if w.list == nil || w.page != dictionary.offset {
		_, _, b, err := dictionary.content(r, c)
		if err != nil {
			return nil, err
		}
		list, err := c.plain(b, int(dictionary.values))
		if err != nil {
			return nil, err
		}
		*w = words{dictionary.offset, list}
	}
	return w.list, nil
}

// coded is a page's values as byte strings by row, also of integers; nil for a missing value.
func (p *page) coded(r io.ReaderAt, c *parquetColumn, dictionary *page, w *words) ([][]byte, error) {
	values, _, _, err := p.entries(r, c, dictionary, w)
	return values, err
}

// entries is coded with the repetition and definition levels of a column of lists.
func (p *page) entries(r io.ReaderAt, c *parquetColumn, dictionary *page, w *words) (list [][]byte, reps, defs []int32,
	err error) {
	repeated, levels, b, err := p.content(r, c)
	if err != nil {
		return nil, nil, nil, err
	}
	if c.maxRep > 0 {
		if reps, err = hybrid(repeated, bitWidth(c.maxRep), int(p.values)); err == nil {
			defs, err = hybrid(levels, bitWidth(c.maxDef), int(p.values))
		}
		if err != nil {
			return nil, nil, nil, err
		}
	}
	list, err = p.decoded(r, c, levels, b, dictionary, w)
	return list, reps, defs, err
}

// decoded decodes the values of b.
func (p *page) decoded(r io.ReaderAt, c *parquetColumn, levels, b []byte, dictionary *page, w *words) ([][]byte, error) {
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
		values, err = c.plain(b, count)
	case (p.encoding == encodingRLEDict || p.encoding == encodingPlainDict) && dictionary != nil:
		if values, err = w.of(r, c, dictionary); err == nil {
			values, err = lookUp(values, b, count)
		}
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

// plain splits off n PLAIN values, fewer if b has fewer.
func (c *parquetColumn) plain(b []byte, n int) ([][]byte, error) {
	width := 8
	switch c.physical {
	case physicalByteArray:
		return byteArrays(b, n)
	case physicalInt32:
		width = 4
	}
	list := make([][]byte, 0, min(n, len(b)/width))
	for ; len(b) >= width && len(list) < n; b = b[width:] {
		list = append(list, b[:width])
	}
	return list, nil
}

// lookUp decodes indices into a dictionary.
func lookUp(words [][]byte, b []byte, count int) ([][]byte, error) {
	if count == 0 {
		return nil, nil
	}
	if len(b) == 0 {
		return nil, errPage
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
	read := labelReader{c: &c}
	err = f.labelPages(r, g, &c, func(p page, dictionary *page) error {
		values, err := p.coded(r, &c, dictionary, &read.dict)
		if err != nil {
			return err
		}
		for _, v := range values {
			if err := read.add(v, len(read.labels)); err != nil {
				return err
			}
		}
		return nil
	})
	return read.labels, read.texts, err
}

// lists reads the lists of labels of row group g. ends has the end of each row's in the labels.
func (f *parquetFooter) lists(r io.ReaderAt, g int, c parquetColumn) (labels []int32, texts []string, ends []int,
	err error) {
	read := labelReader{c: &c}
	err = f.labelPages(r, g, &c, func(p page, dictionary *page) error {
		values, reps, defs, err := p.entries(r, &c, dictionary, &read.dict)
		if err != nil {
			return err
		}
		for i, v := range values {
			if reps[i] == 0 {
				ends = append(ends, len(read.labels))
			} else if len(ends) == 0 {
				return errPage
			}
			if int(defs[i]) < c.listDef {
				continue // an empty list
			}
			if err := read.add(v, len(ends)-1); err != nil {
				return err
			}
			ends[len(ends)-1] = len(read.labels)
		}
		return nil
	})
	return read.labels, read.texts, ends, err
}

// labelPages visits the pages of labels of row group g.
func (f *parquetFooter) labelPages(r io.ReaderAt, g int, c *parquetColumn,
	visit func(p page, dictionary *page) error) error {
	chunk, err := f.chunk(g, *c)
	if err != nil {
		return err
	}
	if c.codec, c.most = chunk.codec, 8; c.physical == physicalByteArray {
		c.most = maxLabel
	}
	return visitPages(r, c, chunk, visit)
}

// labelReader collects labels.
type labelReader struct {
	c      *parquetColumn
	labels []int32
	texts  []string
	dict   words
	known  map[string]string
}

// add takes a label of a row.
func (l *labelReader) add(v []byte, row int) error {
	n := int64(0)
	switch {
	case v == nil:
		return fmt.Errorf("the label of row %d of the row group %w", row, errMissing)
	case l.c.physical == physicalByteArray:
		if len(v) > maxLabel {
			return fmt.Errorf("the label of row %d of the row group has %d bytes, the limit is %d", row, len(v), maxLabel)
		}
		text, ok := l.known[string(v)]
		if !ok {
			if text = string(v); l.known == nil {
				l.known = map[string]string{}
			}
			l.known[text] = text
		}
		l.texts = append(l.texts, text)
	case l.c.physical == physicalInt32:
		n = int64(int32(binary.LittleEndian.Uint32(v)))
	default:
		n = int64(binary.LittleEndian.Uint64(v))
	}
	if n < 0 || n >= maxClasses {
		return fmt.Errorf("label %s of row %d of the row group is outside [0, %d): of images without labels "+
			"(−1) none can be read", strconv.FormatInt(n, 10), row, maxClasses)
	}
	l.labels = append(l.labels, int32(n))
	return nil
}

// images visits the images of row group g: with their place in the file, or with a reference to a page.
func (f *parquetFooter) images(r *blockReader, g int, c parquetColumn,
	visit func(k int, offset, size int64, ref *pageRef) error) (int, error) {
	chunk, err := f.chunk(g, c)
	if err != nil {
		return 0, err
	}
	c.codec = chunk.codec
	end, row := chunk.start()+chunk.size, 0
	err = visitPages(r.r, &c, chunk, func(p page, dictionary *page) error {
		// A page with a checksum is read whole, so that it can be checked.
		inPlace := !p.summed && p.encoding == encodingPlain &&
			(c.codec == codecNone || p.kind == pageDataV2 && !p.packed)
		if !inPlace {
			ref := &pageRef{page: p.offset, end: end, values: chunk.values, column: &c}
			if dictionary != nil {
				ref.dictionary = dictionary.offset
			}
			for range p.values {
				if err := visit(row, 0, 0, ref); err != nil {
					return err
				}
				row++
			}
			return nil
		}
		return p.places(r, c.maxDef, func(offset, size int64) error {
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

// decode decodes the page of ref and claims its memory from room; w is the last dictionary of its file.
func (ref *pageRef) decode(r io.ReaderAt, room Room, w *words) (values [][]byte, taken int64, err error) {
	c := ref.column
	p, err := readPage(r, c, ref.page, ref.end, ref.values)
	if err != nil {
		return nil, 0, err
	}
	var dictionary *page
	taken = p.memory()
	if ref.dictionary > 0 {
		d, err := readPage(r, c, ref.dictionary, ref.end, ref.values)
		if err != nil {
			return nil, 0, err
		}
		dictionary = &d
		taken += d.memory()
	}
	if room != nil {
		if err := room.Claim(taken); err != nil {
			return nil, 0, fmt.Errorf("page at offset %d: %w", p.offset, err)
		}
		defer room.Release(taken)
	}
	values, err = p.coded(r, c, dictionary, w)
	if err != nil {
		return nil, 0, fmt.Errorf("page at offset %d: %w", p.offset, err)
	}
	return values, taken, nil
}

// memory is the number of bytes that decoding a page takes: the page, its decompressed content, and its values.
func (p *page) memory() int64 { return p.size + p.unpacked + 64*p.values }
