// Package ocdbt reads TensorStore's key-value databases in a folder, "Optionally-Cooperative Distributed B+Trees", in
// which Orbax keeps checkpoints. The file manifest.ocdbt names the root of a tree for each version; nodes and values
// are ranges of data files. Nodes have checksums, which are compared; values have none.
//
// Format: https://google.github.io/tensorstore/kvstore/ocdbt, version 0.
package ocdbt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/klauspost/compress/zstd"

	"onlinerna/internal/files"
	"onlinerna/internal/text"
)

// ManifestName is the file of a database's versions.
const ManifestName = "manifest.ocdbt"

// Bounds of a database.
const (
	maxNode  = 100 << 20 // bytes of a manifest or node, compressed and decompressed: Orbax's limit
	maxNodes = 1 << 16   // nodes that are visited
	maxKeys  = 1 << 20   // keys of the tree, and entries of a node
	maxText  = 192 << 20 // bytes of all keys and inline values
	maxName  = 1<<16 - 1 // bytes of a key or a path
)

const manifestMagic, nodeMagic = 0x0cdb3a2a, 0x0cdb20de

// Entry is a key with its value: bytes, or a range of a file.
type Entry struct {
	Key    string
	Inline []byte
	File   string // path within the folder, local; empty for an inline value
	Off    int64
	Len    int64
}

type tree struct {
	dir     string
	entries []Entry
	open    map[string]*os.File
	nodes   int
	text    int
}

// Read returns the entries of the latest version, ordered by key.
func Read(dir string) ([]Entry, error) {
	t := &tree{dir: dir, open: map[string]*os.File{}}
	defer func() {
		for _, f := range t.open {
			f.Close()
		}
	}()
	root, err := t.root()
	if err != nil {
		return nil, err
	}
	if root.keys == 0 {
		return nil, nil
	}
	if err := t.visit(root.ref, root.height, ""); err != nil {
		return nil, err
	}
	return t.entries, nil
}

// ref is a range of a data file; files of a child's table lie behind base.
type ref struct {
	file, base string
	off, n     uint64
}

type root struct {
	ref
	height byte
	keys   uint64
}

// numberedName is the name of a file of versions, which ends in a number.
var numberedName = regexp.MustCompile(`^manifest\.[0-9a-f]{16}$`)

// root finds the root of the latest version.
func (t *tree) root() (root, error) {
	r, numbered, err := t.manifest(ManifestName)
	if err != nil || !numbered {
		return r, err
	}
	all, err := os.ReadDir(t.dir)
	if err != nil {
		return r, err
	}
	last := ""
	for _, e := range all { // in order
		if numberedName.MatchString(e.Name()) {
			last = e.Name()
		}
	}
	if last == "" {
		return r, fmt.Errorf("%s: it refers to a file manifest.0…, and there is none", filepath.Join(t.dir, ManifestName))
	}
	r, numbered, err = t.manifest(last)
	if err == nil && numbered {
		err = fmt.Errorf("%s: it holds no version", filepath.Join(t.dir, last))
	}
	return r, err
}

// manifest reads a manifest. numbered is true if the versions are in files of their own.
func (t *tree) manifest(name string) (_ root, numbered bool, err error) {
	path := filepath.Join(t.dir, name)
	f, size, err := files.OpenSized(path)
	if err != nil {
		return root{}, false, err
	}
	defer f.Close()
	if size > maxNode {
		return root{}, false, fmt.Errorf("%s: a manifest of %d bytes: at most %d are read", path, size, maxNode)
	}
	b := make([]byte, size)
	if _, err := io.ReadFull(f, b); err != nil {
		return root{}, false, fmt.Errorf("%s: %w", path, err)
	}
	r, err := decode(b, manifestMagic)
	if err != nil {
		return root{}, false, fmt.Errorf("%s: %w", path, err)
	}
	r.bytes(16) // the database's identifier
	kind := r.byte()
	r.varint() // largest inline value
	r.varint() // largest decoded node
	r.byte()   // arity of the tree of versions
	if method := r.varint(); method == 1 {
		r.bytes(4) // level of compression
	} else if method != 0 {
		r.fail("compression method %d", method)
	}
	if kind == 1 && r.err == nil {
		return root{}, true, nil
	} else if kind != 0 {
		r.fail("a manifest of kind %d", kind)
	}
	table := r.table("")
	n := r.count()
	r.varints(n) // generations
	heights := r.bytes(n)
	refs := r.refs(n, table)
	keys := r.varints(n)
	if r.err == nil && n == 0 {
		r.fail("it holds no version")
	}
	if r.err != nil {
		return root{}, false, fmt.Errorf("%s: %w", path, r.err)
	}
	return root{refs[n-1], heights[n-1], keys[n-1]}, false, nil
}

// visit reads a node, and adds the entries below it. prefix is that of all its keys.
func (t *tree) visit(at ref, height byte, prefix string) error {
	if t.nodes++; t.nodes > maxNodes {
		return fmt.Errorf("%s: more than %d nodes", t.dir, maxNodes)
	}
	b, err := t.read(at)
	if err != nil {
		return err
	}
	r, err := decode(b, nodeMagic)
	if err == nil {
		err = t.node(r, at, height, prefix)
	}
	if err != nil && !errors.As(err, new(below)) {
		err = below{fmt.Errorf("%s: the node at byte %d: %w", filepath.Join(t.dir, at.file), at.off, err)}
	}
	return err
}

// below is an error that names the file and the node.
type below struct{ error }

func (t *tree) node(r *reader, at ref, height byte, prefix string) error {
	if h := r.byte(); h != height {
		r.fail("height %d, want %d", h, height)
	}
	table := r.table(at.base)
	n := r.count()
	if n == 0 {
		r.fail("it has no entry")
	}
	shared := r.varints(n - 1)
	lengths := r.varints(n)
	var common []uint64
	if height > 0 {
		common = r.varints(n)
	}
	keys := make([]string, 0, n)
	last := ""
	for i := 0; i < n && r.err == nil; i++ {
		from := uint64(0)
		if i > 0 {
			from = shared[i-1]
		}
		if from > uint64(len(last)) || lengths[i] > maxName || from+lengths[i]+uint64(len(prefix)) > maxName {
			return fmt.Errorf("key %d: %d bytes of %d, and %d", i, from, len(last), lengths[i])
		}
		last = last[:from] + string(r.bytes(int(lengths[i])))
		if t.text += len(prefix) + len(last); t.text > maxText {
			return fmt.Errorf("keys of more than %d bytes", maxText)
		}
		keys = append(keys, last)
	}
	if r.err != nil {
		return r.err
	}
	if height == 0 {
		return t.leaf(r, table, keys, prefix)
	}
	refs := r.refs(n, table)
	r.varints(3 * n) // numbers of keys and bytes
	if r.end(); r.err != nil {
		return r.err
	}
	for i, at := range refs {
		if common[i] > uint64(len(keys[i])) {
			return fmt.Errorf("key %d: %d common bytes of %d", i, common[i], len(keys[i]))
		}
		if err := t.visit(at, height-1, prefix+keys[i][:common[i]]); err != nil {
			return err
		}
	}
	return nil
}

// leaf adds a leaf's entries.
func (t *tree) leaf(r *reader, table []path, keys []string, prefix string) error {
	if len(t.entries)+len(keys) > maxKeys {
		return fmt.Errorf("more than %d keys", maxKeys)
	}
	lengths := r.varints(len(keys))
	kinds := r.bytes(len(keys))
	var out []int
	own := make([]Entry, len(keys))
	for i := 0; i < len(keys) && r.err == nil; i++ {
		own[i] = Entry{Key: prefix + keys[i], Len: int64(lengths[i])}
		switch kinds[i] {
		case 0:
		case 1:
			out = append(out, i)
		default:
			return fmt.Errorf("key %q: a value of kind %d", own[i].Key, kinds[i])
		}
		if lengths[i] > math.MaxInt64 {
			return fmt.Errorf("key %q: a value of %d bytes", own[i].Key, lengths[i])
		}
	}
	for _, i := range out {
		own[i].File = r.file(table).name
	}
	for _, i := range out {
		if own[i].Off = int64(r.varint()); own[i].Off < 0 {
			return fmt.Errorf("key %q: its value is at byte %d", own[i].Key, uint64(own[i].Off))
		}
	}
	for i := range own {
		if own[i].File == "" && r.err == nil {
			own[i].Inline = bytes.Clone(r.bytes(int(min(own[i].Len, maxNode+1))))
			t.text += len(own[i].Inline)
		}
	}
	r.end()
	if r.err == nil && t.text > maxText {
		r.fail("inline values of more than %d bytes", maxText)
	}
	if n := len(t.entries); r.err == nil && n > 0 && t.entries[n-1].Key >= own[0].Key {
		r.fail("key %q after %q", own[0].Key, t.entries[n-1].Key)
	}
	for i := 1; i < len(own) && r.err == nil; i++ {
		if own[i-1].Key >= own[i].Key {
			r.fail("key %q after %q", own[i].Key, own[i-1].Key)
		}
	}
	t.entries = append(t.entries, own...)
	return r.err
}

// read reads a range of a data file.
func (t *tree) read(at ref) ([]byte, error) {
	f := t.open[at.file]
	if f == nil {
		var err error
		if f, err = files.Open(filepath.Join(t.dir, filepath.FromSlash(at.file))); err != nil {
			return nil, err
		}
		t.open[at.file] = f
	}
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	size := uint64(st.Size())
	if at.n > maxNode || at.n > size || at.off > size-at.n {
		return nil, fmt.Errorf("%s of %d bytes: a node of %d bytes at %d: it was cut short, or it is damaged", f.Name(), size,
			at.n, at.off)
	}
	b := make([]byte, at.n)
	_, err = f.ReadAt(b, int64(at.off))
	return b, err
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// decode verifies a manifest's or node's frame and checksum, and decompresses its body.
func decode(b []byte, magic uint32) (*reader, error) {
	if len(b) < 18 || binary.BigEndian.Uint32(b) != magic {
		return nil, errors.New("not a part of an OCDBT database")
	}
	if n := binary.LittleEndian.Uint64(b[4:]); n != uint64(len(b)) {
		return nil, fmt.Errorf("%d bytes, it says %d: it was cut short", len(b), n)
	}
	body, sum := b[:len(b)-4], binary.LittleEndian.Uint32(b[len(b)-4:])
	if crc32.Checksum(body, castagnoli) != sum {
		return nil, errors.New("damaged: the checksum differs")
	}
	r := &reader{b: body[12:]}
	if v := r.varint(); v != 0 {
		return nil, fmt.Errorf("version %d of the format: 0 is read", v)
	}
	switch method := r.varint(); {
	case r.err != nil || method > 1:
		return nil, fmt.Errorf("compression method %d", method)
	case method == 0:
		return r, nil
	}
	d, err := zstd.NewReader(strings.NewReader(""), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxNode),
		zstd.WithDecoderMaxWindow(maxNode))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	whole, err := d.DecodeAll(r.b, nil)
	if err != nil {
		return nil, fmt.Errorf("damaged: %w", err)
	}
	return &reader{b: whole}, nil
}

// A path is a data file's; its tables' files lie behind base.
type path struct{ name, base string }

// reader reads numbers from front to back; the first mistake stays.
type reader struct {
	b   []byte
	err error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

func (r *reader) bytes(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.fail("it was cut short")
	}
	if r.err != nil {
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) byte() byte {
	if b := r.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) varint() uint64 {
	x, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail("it was cut short")
	}
	if r.err != nil {
		return 0
	}
	r.b = r.b[n:]
	return x
}

// varints reads n numbers, of a byte or more each.
func (r *reader) varints(n int) []uint64 {
	if n < 0 || n > len(r.b) {
		r.fail("it was cut short")
	}
	if r.err != nil {
		return nil
	}
	x := make([]uint64, n)
	for i := range x {
		x[i] = r.varint()
	}
	return x
}

// count reads a number of entries.
func (r *reader) count() int {
	n := r.varint()
	if n > maxKeys {
		r.fail("%d entries: at most %d are read", n, maxKeys)
		return 0
	}
	return int(n)
}

func (r *reader) end() {
	if len(r.b) > 0 {
		r.fail("%d bytes behind its end", len(r.b))
	}
}

// table reads the names of data files, each with a part in common with the one before.
func (r *reader) table(base string) []path {
	n := r.count()
	if n == 0 || r.err != nil {
		return nil
	}
	shared, lengths, bases := r.varints(n-1), r.varints(n), r.varints(n)
	var table []path
	last, size := "", 0
	for i := 0; i < n && r.err == nil; i++ {
		from := uint64(0)
		if i > 0 {
			from = shared[i-1]
		}
		if from > uint64(len(last)) || lengths[i] > maxName || from+lengths[i] > maxName || bases[i] > from+lengths[i] {
			r.fail("data file %d: %d bytes of %d, and %d", i, from, len(last), lengths[i])
			return nil
		}
		last = last[:from] + string(r.bytes(int(lengths[i])))
		p := path{base + last, base}
		if bases[i] > 0 && r.err == nil {
			p.base = base + last[:bases[i]]
		}
		if size += len(p.name); size > maxNode {
			r.fail("names of data files of more than %d bytes", maxNode)
		}
		// An empty tree's root is in a file without a name.
		if p.name != "" && !filepath.IsLocal(filepath.FromSlash(p.name)) || strings.Contains(p.name, `\`) ||
			text.Printable(p.name) != p.name {
			r.fail("a data file %.100q, which is not in the folder: refused", p.name)
		}
		table = append(table, p)
	}
	return table
}

func (r *reader) file(table []path) path {
	i := r.varint()
	if i >= uint64(len(table)) {
		r.fail("data file %d of %d", i, len(table))
		return path{}
	}
	return table[i]
}

// refs reads ranges of data files.
func (r *reader) refs(n int, table []path) []ref {
	if n > len(r.b) {
		r.fail("it was cut short")
	}
	if r.err != nil {
		return nil
	}
	refs := make([]ref, n)
	for i := range refs {
		p := r.file(table)
		refs[i].file, refs[i].base = p.name, p.base
	}
	for i := range refs {
		refs[i].off = r.varint()
	}
	for i := range refs {
		refs[i].n = r.varint()
	}
	return refs
}
