package format

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
)

// parquetFooter holds the needed metadata from the end of a parquet file.
type parquetFooter struct {
	size     int64 // of the file
	schema   []schemaElement
	groups   []rowGroup
	metadata []keyValue
}

type schemaElement struct {
	name       string
	physical   int64 // −1 for a group
	repetition int64
	children   int64
}

type rowGroup struct {
	rows   int64
	chunks []columnChunk
}

// columnChunk locates a column of a row group.
type columnChunk struct {
	elsewhere bool // in another file
	physical  int64
	codec     int64
	values    int64
	size      int64 // compressed, headers included
	data      int64 // offset of the first data page
	dict      int64 // offset of the dictionary page, 0 for none
}

type keyValue struct{ key, value string }

// Physical types, repetitions, encodings and page types of the format.
const (
	physicalInt32     = 1
	physicalInt64     = 2
	physicalByteArray = 6

	repetitionOptional = 1
	repetitionRepeated = 2

	encodingPlain               = 0
	encodingPlainDict           = 2
	encodingRLEDict             = 8
	pageData                    = 0
	pageIndex                   = 1
	pageDictionary              = 2
	pageDataV2                  = 3
	parquetMagic                = "PAR1"
	parquetEncryptedMagic       = "PARE"
	maxPage                     = 1 << 29
	maxLabel                    = 1 << 10 // bytes of a label that is a name
	maxHeader                   = 16 << 20
	maxFooter                   = 64 << 20
	maxParts                    = 1 << 16 // elements of a list of the metadata
	firstHeaderRead             = 512
	codecNone             int64 = 0
)

func readFooter(r io.ReaderAt, size int64) (*parquetFooter, error) {
	var tail [8]byte
	if size < 12 {
		return nil, errors.New("not a parquet file, or cut short: it has no end mark")
	}
	if _, err := r.ReadAt(tail[:], size-8); err != nil {
		return nil, err
	}
	switch string(tail[4:]) {
	case parquetMagic:
	case parquetEncryptedMagic:
		return nil, errors.New("an encrypted parquet file cannot be read")
	default:
		return nil, errors.New("not a parquet file, or cut short: it has no end mark")
	}
	n := int64(binary.LittleEndian.Uint32(tail[:]))
	if n > size-12 || n > maxFooter {
		return nil, fmt.Errorf("the end mark claims %d bytes of metadata in a file of %d", n, size)
	}
	b := make([]byte, n)
	if _, err := r.ReadAt(b, size-8-n); err != nil {
		return nil, err
	}
	f := &parquetFooter{size: size}
	t := &thrift{b: b}
	t.structure(func(id int, kind byte) bool {
		switch {
		case id == 2 && kind == thriftList:
			t.list(maxParts, func(byte) { f.schema = append(f.schema, readSchemaElement(t)) })
		case id == 4 && kind == thriftList:
			t.list(maxParts, func(byte) { f.groups = append(f.groups, readRowGroup(t)) })
		case id == 5 && kind == thriftList:
			t.list(maxParts, func(byte) { f.metadata = append(f.metadata, readKeyValue(t)) })
		default:
			return false
		}
		return true
	})
	return f, t.err
}

func readSchemaElement(t *thrift) schemaElement {
	e := schemaElement{physical: -1}
	t.structure(func(id int, kind byte) bool {
		switch {
		case id == 1 && kind == thriftInt32:
			e.physical = t.integer()
		case id == 3 && kind == thriftInt32:
			e.repetition = t.integer()
		case id == 4 && kind == thriftBinary:
			e.name = string(t.binary())
		case id == 5 && kind == thriftInt32:
			e.children = t.integer()
		default:
			return false
		}
		return true
	})
	return e
}

func readRowGroup(t *thrift) rowGroup {
	var g rowGroup
	t.structure(func(id int, kind byte) bool {
		switch {
		case id == 1 && kind == thriftList:
			t.list(maxParts, func(byte) { g.chunks = append(g.chunks, readChunk(t)) })
		case id == 3 && kind == thriftInt64:
			g.rows = t.integer()
		default:
			return false
		}
		return true
	})
	return g
}

func readChunk(t *thrift) columnChunk {
	var c columnChunk
	into := map[int]*int64{1: &c.physical, 4: &c.codec, 5: &c.values, 7: &c.size, 9: &c.data, 11: &c.dict}
	t.structure(func(id int, kind byte) bool {
		switch {
		case id == 1 && kind == thriftBinary:
			c.elsewhere = len(t.binary()) > 0
		case id == 3 && kind == thriftStruct:
			t.structure(func(id int, kind byte) bool {
				if into[id] == nil || kind != thriftInt32 && kind != thriftInt64 {
					return false
				}
				*into[id] = t.integer()
				return true
			})
		default:
			return false
		}
		return true
	})
	return c
}

func readKeyValue(t *thrift) keyValue {
	var kv keyValue
	t.structure(func(id int, kind byte) bool {
		switch {
		case id == 1 && kind == thriftBinary:
			kv.key = string(t.binary())
		case id == 2 && kind == thriftBinary:
			kv.value = string(t.binary())
		default:
			return false
		}
		return true
	})
	return kv
}

// parquetColumn is a leaf of the schema.
type parquetColumn struct {
	index    int // among a row group's chunks
	path     []string
	physical int64
	maxDef   int   // how many of path are optional or repeated
	maxRep   int   // how many of path are repeated
	listDef  int   // definition level of an entry of the innermost list; lower ones are empty lists
	codec    int64 // of a chunk
	most     int64 // bytes of a value: 0 for no limit but that of a page
}

// limit bounds the bytes of a page with the given number of values after decompression.
func (c *parquetColumn) limit(values int64) int64 {
	const overhead = 16 // levels and a length
	if c.most == 0 || values > maxPage/(c.most+overhead) {
		return maxPage
	}
	return 4096 + values*(c.most+overhead)
}

func (c parquetColumn) name() string { return strings.Join(c.path, ".") }

// kind is the possible use of a column.
func (c parquetColumn) kind() string {
	list := map[bool]string{true: "list of "}[c.maxRep == 1]
	switch {
	case c.maxRep > 1:
		return "lists of lists"
	case c.physical == physicalByteArray:
		return list + "bytes"
	case c.physical == physicalInt32 || c.physical == physicalInt64:
		return list + "integer"
	}
	return "of another type"
}

// columns lists the leaves of the schema.
func (f *parquetFooter) columns() ([]parquetColumn, error) {
	var list []parquetColumn
	next := 1 // after the root
	var walk func(children int64, above parquetColumn) error
	walk = func(children int64, above parquetColumn) error {
		for ; children > 0; children-- {
			if next >= len(f.schema) || len(above.path) > 32 {
				return errThrift
			}
			e := f.schema[next]
			next++
			c := above
			c.path = append(append([]string(nil), above.path...), e.name)
			c.physical = e.physical
			if e.repetition == repetitionOptional || e.repetition == repetitionRepeated {
				c.maxDef++
			}
			if e.repetition == repetitionRepeated {
				c.maxRep++
				c.listDef = c.maxDef
			}
			if e.physical < 0 || e.children > 0 {
				if err := walk(e.children, c); err != nil {
					return err
				}
				continue
			}
			c.index = len(list)
			list = append(list, c)
		}
		return nil
	}
	if len(f.schema) == 0 {
		return nil, errThrift
	}
	return list, walk(f.schema[0].children, parquetColumn{})
}

// chunk is the chunk of a column in row group g.
func (f *parquetFooter) chunk(g int, c parquetColumn) (columnChunk, error) {
	if c.index >= len(f.groups[g].chunks) {
		return columnChunk{}, errThrift
	}
	chunk := f.groups[g].chunks[c.index]
	start := chunk.start()
	switch {
	case chunk.elsewhere:
		return chunk, errors.New("its values lie in another file, which is not supported")
	case chunk.physical != c.physical:
		return chunk, errThrift
	case chunk.values < 0 || chunk.values > maxRows(f.size):
		return chunk, fmt.Errorf("claims %d values in a file of %d bytes: damaged", chunk.values, f.size)
	case start < 4 || chunk.size < 0 || chunk.size > f.size || start > f.size-chunk.size:
		return chunk, fmt.Errorf("lies at [%d, +%d) of a file of %d bytes: cut short, or damaged", start,
			chunk.size, f.size)
	case chunk.codec != codecNone && decompressors[chunk.codec] == nil:
		return chunk, fmt.Errorf("compressed by codec %d (LZO, Brotli or LZ4): only snappy, gzip and zstd can be read",
			chunk.codec)
	}
	return chunk, nil
}

// maxRows bounds the rows of a file of the given size: except in very small files, an image takes more than a byte.
func maxRows(size int64) int64 { return size + 1<<16 }

func (c columnChunk) start() int64 {
	if c.dict > 0 && c.dict < c.data {
		return c.dict
	}
	return c.data
}
