package hdf5

import (
	"bytes"
	"errors"
	"fmt"
)

// link is an entry of a group.
type link struct {
	name string
	addr uint64
}

// group lists the links of a group; soft and external ones are left out.
func (f *file) group(list []message) ([]link, error) {
	if m := find(list, msgSymbols); m != nil {
		r := &reader{b: m}
		tree, heap := r.u64(), r.u64()
		if r.err != nil {
			return nil, r.err
		}
		names, err := f.heap(heap)
		if err != nil {
			return nil, err
		}
		var links []link
		return links, f.symbols(tree, names, &links, maxDepth)
	}
	r := &reader{b: find(list, msgLinkInfo)}
	r.byte()
	flags := r.byte()
	if flags&1 != 0 {
		r.u64()
	}
	if heap := r.u64(); r.err != nil || heap != undefined {
		return nil, errors.New("its links are in a fractal heap, which is not read: write the file with " +
			"libver=\"earliest\" and track_order=False")
	}
	var links []link
	for _, m := range list {
		if m.kind == msgLink {
			l, hard, err := linkOf(m.data)
			if err != nil {
				return nil, err
			}
			if hard {
				links = append(links, l)
			}
		}
	}
	return links, nil
}

// linkOf reads a message of a link.
func linkOf(b []byte) (l link, hard bool, err error) {
	r := &reader{b: b}
	if v := r.byte(); v != 1 {
		return l, false, fmt.Errorf("a link of version %d", v)
	}
	flags := r.byte()
	kind := byte(0)
	if flags&8 != 0 {
		kind = r.byte()
	}
	if flags&4 != 0 {
		r.u64()
	}
	if flags&16 != 0 {
		r.byte()
	}
	n := r.uint(1 << (flags & 3))
	if n > maxName {
		return l, false, fmt.Errorf("a link's name of %d bytes", n)
	}
	l.name = string(r.bytes(int(n)))
	if hard = kind == 0; hard {
		l.addr = r.u64()
	}
	return l, hard, r.err
}

// heap reads a local heap, the names of a group.
func (f *file) heap(addr uint64) ([]byte, error) {
	r, err := f.at(addr, 32)
	if err != nil {
		return nil, err
	}
	if string(r.bytes(4)) != "HEAP" {
		return nil, errors.New("its heap of names is damaged")
	}
	r.bytes(4)
	n := r.u64()
	r.u64()
	at := r.u64()
	if n > maxHeap {
		return nil, fmt.Errorf("names of %d bytes", n)
	}
	r, err = f.at(at, n)
	if err != nil {
		return nil, err
	}
	return r.b, nil
}

// symbols adds the entries below a node of a group's tree.
func (f *file) symbols(addr uint64, names []byte, links *[]link, depth int) error {
	r, err := f.at(addr, 24)
	if err != nil {
		return err
	}
	switch string(r.bytes(4)) {
	case "SNOD":
		return f.leaf(addr, names, links)
	case "TREE":
	default:
		return errors.New("its tree is damaged")
	}
	if kind := r.byte(); kind != 0 || depth == 0 {
		return errors.New("its tree is damaged")
	}
	r.byte()
	n := int(r.u16())
	if r, err = f.at(addr+24, uint64(16*n+8)); err != nil {
		return err
	}
	for range n {
		r.u64()
		if f.links++; f.links > maxObjects {
			return fmt.Errorf("more than %d objects", maxObjects)
		}
		if err := f.symbols(r.u64(), names, links, depth-1); err != nil {
			return err
		}
	}
	return r.err
}

// leaf adds the entries of a node of symbols.
func (f *file) leaf(addr uint64, names []byte, links *[]link) error {
	r, err := f.at(addr, 8)
	if err != nil {
		return err
	}
	r.bytes(6)
	n := int(r.u16())
	if r, err = f.at(addr+8, uint64(40*n)); err != nil {
		return err
	}
	for range n {
		at, to, cache := r.u64(), r.u64(), r.u32()
		r.bytes(20)
		if at >= uint64(len(names)) {
			return errors.New("a name is not in its heap")
		}
		name, _, ended := bytes.Cut(names[at:], []byte{0})
		if !ended || len(name) > maxName {
			return errors.New("a name is not in its heap")
		}
		if len(*links) >= maxObjects {
			return fmt.Errorf("more than %d objects", maxObjects)
		}
		if cache != 2 { // else a soft link
			*links = append(*links, link{string(name), to})
		}
	}
	return r.err
}
