package format

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"onlinerna/data/internal/datatest"
)

// forged is a parquet file whose numbers need not be true.
type forged struct {
	label, image forgedColumn
	groups       int // how often the row group is listed
}

// forgedColumn is a column chunk of a file; its values are claims.
type forgedColumn struct {
	physical, codec, values int64
	optional                bool
	pages                   []forgedPage
}

type forgedPage struct {
	kind, encoding             int64
	values, unpacked, def, rep int64
	body                       []byte
}

// compact writes Thrift's compact protocol.
type compact struct{ b []byte }

func (c *compact) varint(v int64)   { c.b = binary.AppendUvarint(c.b, uint64(v<<1)^uint64(v>>63)) }
func (c *compact) text(s string)    { c.b = append(binary.AppendUvarint(c.b, uint64(len(s))), s...) }
func (c *compact) head(n, kind int) { c.b = append(c.b, byte(n<<4|kind)) }

// field writes an integer as the field whose number is delta above the last one.
func (c *compact) field(delta, kind int, v int64) {
	c.head(delta, kind)
	c.varint(v)
}

func (c *compact) list(kind, n int) {
	c.head(15, kind)
	c.b = binary.AppendUvarint(c.b, uint64(n))
}

func (p *forgedPage) bytes() []byte {
	var c compact
	c.field(1, thriftInt32, p.kind)
	c.field(1, thriftInt32, p.unpacked)
	c.field(1, thriftInt32, int64(len(p.body)))
	switch p.kind {
	case pageDataV2:
		c.head(5, thriftStruct)
		c.field(1, thriftInt32, p.values)
		c.field(3, thriftInt32, p.encoding)
		c.field(1, thriftInt32, p.def)
		c.field(1, thriftInt32, p.rep)
	case pageDictionary:
		c.head(4, thriftStruct)
		c.field(1, thriftInt32, p.values)
		c.field(1, thriftInt32, p.encoding)
	default:
		c.head(2, thriftStruct)
		c.field(1, thriftInt32, p.values)
		c.field(1, thriftInt32, p.encoding)
	}
	return append(append(c.b, 0, 0), p.body...)
}

// bytes is the file: a column "image" of byte arrays and one "label".
func (f *forged) bytes() []byte {
	file := []byte(parquetMagic)
	var chunks compact
	for _, c := range []*forgedColumn{&f.image, &f.label} {
		start, data, dict := int64(len(file)), int64(0), int64(0)
		for _, p := range c.pages {
			if p.kind == pageDictionary {
				dict = int64(len(file))
			} else if data == 0 {
				data = int64(len(file))
			}
			file = append(file, p.bytes()...)
		}
		chunks.head(3, thriftStruct)
		chunks.field(1, thriftInt32, c.physical)
		chunks.field(3, thriftInt32, c.codec)
		chunks.field(1, thriftInt64, c.values)
		chunks.field(2, thriftInt64, int64(len(file))-start)
		chunks.field(2, thriftInt64, data)
		if dict > 0 {
			chunks.field(2, thriftInt64, dict)
		}
		chunks.b = append(chunks.b, 0, 0)
	}
	var c compact
	c.head(2, thriftList)
	c.list(thriftStruct, 3)
	c.head(4, thriftBinary)
	c.text("root")
	c.field(1, thriftInt32, 2)
	c.b = append(c.b, 0)
	c.b = append(c.b, f.image.schema("image")...)
	c.b = append(c.b, f.label.schema("label")...)
	c.head(2, thriftList)
	c.list(thriftStruct, max(1, f.groups))
	for range max(1, f.groups) {
		c.head(1, thriftList)
		c.list(thriftStruct, 2)
		c.b = append(append(c.b, chunks.b...), 0)
	}
	c.b = append(c.b, 0)
	file = append(file, c.b...)
	file = binary.LittleEndian.AppendUint32(file, uint32(len(c.b)))
	return append(file, parquetMagic...)
}

func (c *forgedColumn) schema(name string) []byte {
	var s compact
	s.field(1, thriftInt32, c.physical)
	repetition := int64(0)
	if c.optional {
		repetition = repetitionOptional
	}
	s.field(2, thriftInt32, repetition)
	s.head(1, thriftBinary)
	s.text(name)
	return append(s.b, 0)
}

// zeros is a zstd frame of so many zeros: 4 bytes for 128 KiB.
func zeros(n int) []byte {
	b := binary.LittleEndian.AppendUint32([]byte{0x28, 0xb5, 0x2f, 0xfd, 0xa0}, uint32(n))
	for n > 0 {
		k := min(n, 128<<10)
		head := uint32(k<<3 | 1<<1)
		if n -= k; n == 0 {
			head |= 1
		}
		b = append(b, byte(head), byte(head>>8), byte(head>>16), 0)
	}
	return b
}

// run is n times the index 0 into a dictionary, in the hybrid coding with a width of 1.
func run(n int64) []byte { return append(binary.AppendUvarint([]byte{1}, uint64(n)<<1), 0) }

// word is a PLAIN byte array.
func word(s string) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(s))), s...)
}

const (
	codecZstd = 6
	hugePage  = 400 << 20
)

// numbers are labels, all of them 0, one in each of n pages.
func numbers(n int) forgedColumn {
	c := forgedColumn{physical: physicalInt64, values: int64(n)}
	for range n {
		c.pages = append(c.pages, forgedPage{values: 1, unpacked: 8, body: make([]byte, 8)})
	}
	return c
}

// attacks are small files with large claims.
func attacks() map[string]forged {
	plainImage := forgedColumn{physical: physicalByteArray, values: 1,
		pages: []forgedPage{{values: 1, unpacked: 9, body: word("image")}}}
	packed := func(values int64, pages ...forgedPage) forgedColumn {
		return forgedColumn{physical: physicalByteArray, codec: codecZstd, values: values, pages: pages}
	}
	bomb := forgedPage{values: 1, unpacked: hugePage, body: zeros(hugePage)}
	dictionary := bomb
	dictionary.kind = pageDictionary
	index := forgedPage{encoding: encodingRLEDict, values: 1, unpacked: 3, body: rawZstd(run(1))}
	const rows = 1 << 30
	many := forgedPage{encoding: encodingRLEDict, values: rows, unpacked: int64(len(run(rows))), body: run(rows)}
	zero := forgedPage{kind: pageDictionary, values: 1, unpacked: 8, body: make([]byte, 8)}
	levels := plainImage
	levels.optional = true
	levels.pages = []forgedPage{{kind: pageDataV2, values: 1, unpacked: 9, def: 1 << 62, rep: 1 << 62,
		body: word("image")}}
	return map[string]forged{
		"levels":     {label: numbers(1), image: levels},
		"byte array": {label: numbers(1), image: packed(1, bomb)},
		"pages":      {label: numbers(5), image: packed(5, bomb, bomb, bomb, bomb, bomb)},
		"dictionary": {label: numbers(4), image: packed(4, dictionary, index, index, index, index)},
		"labels":     {label: packed(3, bomb, bomb, bomb), image: plainImage},
		"dictionary of labels": {label: packed(4, dictionary, index, index, index, index),
			image: plainImage},
		"rows": {label: forgedColumn{physical: physicalInt64, values: rows, pages: []forgedPage{zero, many}},
			image: forgedColumn{physical: physicalByteArray, values: rows, pages: []forgedPage{
				{kind: pageDictionary, values: 1, unpacked: 9, body: word("image")}, many}}},
		"row groups": {groups: 60000, // all of them the same bytes
			label: numbers(1), image: plainImage},
	}
}

// rawZstd is a zstd frame with b uncompressed.
func rawZstd(b []byte) []byte {
	head := uint32(len(b))<<3 | 1
	return append(append(binary.LittleEndian.AppendUint32([]byte{0x28, 0xb5, 0x2f, 0xfd, 0xa0}, uint32(len(b))),
		byte(head), byte(head>>8), byte(head>>16)), b...)
}

// smallRoom is a Room of a number of bytes.
type smallRoom int64

func (r smallRoom) Claim(bytes int64) error {
	if bytes > int64(r) {
		return errors.New("more than there is")
	}
	return nil
}
func (smallRoom) Release(int64)    {}
func (smallRoom) Keeps(int64) bool { return false }

// allocated opens a parquet file, reads all images and returns the bytes allocated for that.
func allocated(t testing.TB, file string, content []byte) (total uint64, err error) {
	if err := os.WriteFile(file, content, 0o644); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	ds, err := openParquet([]string{file}, nil)
	if err == nil {
		b := Buffer{Room: smallRoom(32 << 20)}
		for i := range min(ds.Len(), 100) {
			if _, e := ds.(Encoded).Encoded(i, &b); err == nil {
				err = e
			}
		}
		closeSet(ds)
	}
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, err
}

// A small file takes little memory, whatever it claims.
func TestParquetClaims(t *testing.T) {
	file := filepath.Join(t.TempDir(), "train.parquet")
	plain := forged{label: numbers(1), image: attacks()["row groups"].image}
	if _, err := allocated(t, file, plain.bytes()); err != nil {
		t.Fatalf("a file that tells the truth: %v", err)
	}
	all := attacks()
	for name, f := range all {
		b := f.bytes()
		total, err := allocated(t, file, b)
		if total > 64<<20+30*uint64(len(b)) {
			t.Errorf("%s: a file of %d bytes took %d MB", name, len(b), total>>20)
		}
		datatest.WantError(t, err, "train.parquet")
	}
}

const largeValue = 24 << 20

// A page that is one large value lies in memory once.
func TestParquetLargeValue(t *testing.T) {
	const size = largeValue
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	page := forgedPage{values: 1, unpacked: size + 4, body: w.EncodeAll(word(strings.Repeat("x", size)), nil)}
	for _, kind := range []int64{0, pageDataV2} {
		page.kind = kind
		f := forged{label: numbers(1), image: forgedColumn{physical: physicalByteArray, codec: codecZstd, values: 1,
			pages: []forgedPage{page}}}
		total, err := allocated(t, filepath.Join(t.TempDir(), "train.parquet"), f.bytes())
		if err != nil || total > size*3/2 {
			t.Errorf("kind %d: a value of %d MB took %d MB (%v)", kind, size>>20, total>>20, err)
		}
	}
}

// FuzzForgedParquet changes the claims of whole pages and chunks, which bytes changed at random seldom hit.
func FuzzForgedParquet(f *testing.F) {
	for _, a := range attacks() {
		last := a.image.pages[len(a.image.pages)-1]
		f.Add(a.image.values, a.label.values, last.values, last.unpacked, last.def, last.rep, byte(last.kind),
			byte(last.encoding), byte(a.image.codec), uint16(a.groups), a.image.pages[0].kind == pageDictionary,
			last.body, false)
	}
	w, err := zstd.NewWriter(nil)
	if err != nil {
		f.Fatal(err)
	}
	large := w.EncodeAll(word(strings.Repeat("x", largeValue)), nil)
	for _, kind := range []byte{0, pageDataV2} {
		f.Add(int64(1), int64(1), int64(1), int64(largeValue+4), int64(0), int64(0), kind, byte(0), byte(codecZstd),
			uint16(1), false, large, false)
	}
	path := filepath.Join(f.TempDir(), "train.parquet")
	f.Fuzz(func(t *testing.T, images, labels, values, unpacked, def, rep int64, kind, encoding, codec byte,
		groups uint16, dictionary bool, body []byte, asLabel bool) {
		p := forgedPage{kind: int64(kind), encoding: int64(encoding), values: values, unpacked: unpacked, def: def,
			rep: rep, body: body}
		c := forgedColumn{physical: physicalByteArray, codec: int64(codec), values: images, optional: def > 0,
			pages: []forgedPage{p}}
		if dictionary {
			first := p
			first.kind = pageDictionary
			c.pages = slices.Insert(c.pages, 0, first)
		}
		forged := forged{label: numbers(1), image: c, groups: int(groups)}
		forged.label.values = labels
		if asLabel {
			forged.label, forged.image = c, forgedColumn{physical: physicalByteArray, values: 1,
				pages: []forgedPage{{values: 1, unpacked: 9, body: word("image")}}}
		}
		b := forged.bytes()
		total, err := allocated(t, path, b)
		if total > 256<<20+2000*uint64(len(b)) || err == nil && unpacked == largeValue+4 && total > 2*largeValue {
			t.Fatalf("a file of %d bytes took %d MB", len(b), total>>20)
		}
	})
}
