package data

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"runtime"
	"strconv"
	"strings"
	"sync"
)

// Identity identifies a set of images and their order, unlike [Fingerprint]: by the number of images and by hashes of
// the rest. Sets that differ only in their place have equal identities. The zero value belongs to no set.
type Identity struct {
	Images  int    `json:"images"`
	Classes string `json:"classes,omitempty"` // their names in order
	Labels  string `json:"labels,omitempty"`
	Names   string `json:"names,omitempty"`  // of the images, below their common folder, in order
	Sizes   string `json:"sizes,omitempty"`  // in bytes of 65536 files at most, spread over the set
	Pixels  string `json:"pixels,omitempty"` // of sixteen images at most, as they are stored
	Inputs  string `json:"inputs,omitempty"` // further inputs: their names and lengths, and the numbers of as many images
}

const (
	mostSizes  = 1 << 16
	mostPixels = 16
)

// IdentityOf looks at a set. It reads the sizes of files and a few images; of sets of other packages it reads the
// further inputs alone.
func IdentityOf(ds Dataset) Identity {
	if ds == nil {
		return Identity{}
	}
	n := ds.Len()
	classes, labels, names := sha256.New(), sha256.New(), sha256.New()
	for _, name := range ds.Classes() {
		hashText(classes, name)
	}
	root := commonFolder(ds)
	row, b := make([]float64, len(ds.Classes())), []byte(nil)
	plain := TaskOf(ds) == Classification
	for i := range n {
		if plain {
			hashNumber(labels, int64(ds.Label(i)))
		} else {
			b = hashTargets(ds, i, row, b)
			hashText(labels, string(b))
		}
		hashText(names, ds.Name(i)[root:])
	}
	f := Identity{Images: n, Classes: sum(classes), Labels: sum(labels), Names: sum(names)}
	if known(ds) {
		f.Sizes, f.Pixels = sum(sizesOf(ds)), sum(pixelsIn(ds))
	}
	if len(InputsOf(ds)) > 0 {
		f.Inputs = sum(inputsIn(ds))
	}
	return f
}

// Differ describes how two sets differ; "" if they do not.
func (f Identity) Differ(g Identity) string {
	var list []string
	if f.Images != g.Images {
		list = append(list, fmt.Sprintf("the number of images, %d and %d", f.Images, g.Images))
	}
	other := g.Facts()
	for i, x := range f.Facts()[1:] {
		if x != other[i+1] {
			list = append(list, "the "+x[0])
		}
	}
	return strings.Join(list, ", ")
}

// known reports whether a set is one of this package, whose images may be read at any time.
func known(ds Dataset) bool {
	switch d := ds.(type) {
	case *subset:
		return known(d.Dataset)
	case stored, *memory:
		return true
	}
	return false
}

// commonFolder is the length in bytes of the folder that all names begin with.
func commonFolder(ds Dataset) int {
	if ds.Len() == 0 {
		return 0
	}
	prefix := ds.Name(0)
	for i := range ds.Len() {
		name, k := ds.Name(i), 0
		for k < len(prefix) && k < len(name) && prefix[k] == name[k] {
			k++
		}
		prefix = prefix[:k]
	}
	return strings.LastIndexAny(prefix, `/\`) + 1
}

// spread calls do for at most the given number of indices, spread over [0, n).
func spread(n, most int, do func(k, i int)) {
	count := min(n, most)
	for k := range count {
		do(k, k*n/count)
	}
}

// sizesOf hashes the sizes of images' files: −1 for a missing file and for other sets.
func sizesOf(ds Dataset) hash.Hash {
	sizes := make([]int64, min(ds.Len(), mostSizes))
	var group sync.WaitGroup
	free := make(chan struct{}, 4*runtime.GOMAXPROCS(0)) // asking waits for the disk
	const piece = 256
	for from := 0; from < len(sizes); from += piece {
		free <- struct{}{}
		group.Go(func() {
			defer func() { <-free }()
			for k := from; k < min(from+piece, len(sizes)); k++ {
				sizes[k] = sizeOf(ds, k*ds.Len()/len(sizes))
			}
		})
	}
	group.Wait()
	h := sha256.New()
	for _, n := range sizes {
		hashNumber(h, n)
	}
	return h
}

func sizeOf(ds Dataset, i int) int64 {
	switch d := ds.(type) {
	case *subset:
		return sizeOf(d.Dataset, d.indices[i])
	case stored:
		if s, ok := d.Set.(interface{ Size(i int) (int64, error) }); ok {
			if n, err := s.Size(i); err == nil {
				return n
			}
		}
	}
	return -1
}

// pixelsIn hashes some images as they are stored; one that cannot be read counts as empty.
func pixelsIn(ds Dataset) hash.Hash {
	h := sha256.New()
	s := NewScratch(NewBudget(leastBudget, 1), 1) // the same on all machines: an image beyond it counts as unreadable
	spread(ds.Len(), mostPixels, func(_, i int) {
		b, ok, err := Encoded(ds, i, s)
		if !ok && err == nil {
			if m, e := ds.Read(i, nil, s); e == nil {
				b = m.Pix
			}
		}
		if err != nil {
			b = nil
		}
		hashNumber(h, int64(len(b)))
		h.Write(b)
		s.Release()
	})
	return h
}

// inputsIn hashes the further inputs of some images; those that cannot be read count as zeros.
func inputsIn(ds Dataset) hash.Hash {
	h := sha256.New()
	for k, in := range InputsOf(ds) {
		hashText(h, in.Name)
		hashNumber(h, int64(in.Len))
		row := make([]float32, in.Len)
		spread(ds.Len(), mostPixels, func(_, i int) {
			if err := ds.(Extended).Input(i, k, row); err != nil {
				clear(row)
			}
			binary.Write(h, binary.LittleEndian, row)
		})
	}
	return h
}

func hashText(h hash.Hash, s string) {
	hashNumber(h, int64(len(s)))
	h.Write([]byte(s))
}

func hashNumber(h hash.Hash, n int64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(n))
	h.Write(b[:])
}

func sum(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)[:8]) }

// Facts are the parts of f by name, to be compared one by one.
func (f Identity) Facts() [][2]string {
	return [][2]string{{"number of images", strconv.Itoa(f.Images)}, {"classes", f.Classes}, {"labels", f.Labels},
		{"names and order of the images", f.Names}, {"sizes of the files", f.Sizes}, {"pixels", f.Pixels},
		{"further inputs", f.Inputs}}
}
