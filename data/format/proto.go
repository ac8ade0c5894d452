package format

import (
	"fmt"
	"io"
)

// proto reads a protocol buffer message in a file, and does not read skipped fields.
type proto struct {
	r       io.ReaderAt
	at, end int64
}

// Wire types.
const (
	wireVarint = 0
	wire64     = 1
	wireBytes  = 2
	wire32     = 5
)

func (p *proto) varint() (uint64, error) {
	var buf [10]byte
	n, err := p.r.ReadAt(buf[:min(int64(len(buf)), p.end-p.at)], p.at)
	if err != nil && err != io.EOF {
		return 0, err
	}
	v := uint64(0)
	for i, b := range buf[:n] {
		v |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			p.at += int64(i) + 1
			return v, nil
		}
	}
	return 0, errExample
}

// next moves to the next field; field 0 is the end. For bytes it returns the message part; other values are skipped.
func (p *proto) next() (field int, part proto, err error) {
	if p.at >= p.end {
		return 0, proto{}, nil
	}
	tag, err := p.varint()
	if err != nil {
		return 0, proto{}, err
	}
	if field = int(min(tag>>3, 1<<30)); field == 0 {
		return 0, proto{}, errExample
	}
	skip := uint64(0)
	switch tag & 7 {
	case wireVarint:
		_, err = p.varint()
	case wire64:
		skip = 8
	case wire32:
		skip = 4
	case wireBytes:
		skip, err = p.varint()
	default:
		err = errExample
	}
	if err != nil {
		return 0, proto{}, err
	}
	if skip > uint64(p.end-p.at) {
		return 0, proto{}, errExample
	}
	if tag&7 == wireBytes {
		part = proto{p.r, p.at, p.at + int64(skip)}
	}
	p.at += int64(skip)
	return field, part, nil
}

// only is the last field of that number, a message or bytes.
func (p proto) only(number int) (proto, bool, error) {
	var found proto
	for {
		field, part, err := p.next()
		if err != nil || field == 0 {
			return found, found.r != nil, err
		}
		if field == number && part.r != nil {
			found = part
		}
	}
}

func (p proto) text(most int64) (string, error) {
	if p.end-p.at > most {
		return "", fmt.Errorf("a text of %d bytes where at most %d are usual", p.end-p.at, most)
	}
	b := make([]byte, p.end-p.at)
	if _, err := p.r.ReadAt(b, p.at); err != nil && err != io.EOF {
		return "", err
	}
	return string(b), nil
}

// example reads Example{1: Features{1: map entries{1: key, 2: Feature{1: BytesList, 3: Int64List}}}}.
func (p proto) example() (e example, err error) {
	features, ok, err := p.only(1)
	if err != nil || !ok {
		return e, orExample(err)
	}
	labelled := false
	for {
		field, entry, err := features.next()
		if err != nil {
			return e, err
		}
		if field == 0 {
			break
		}
		if field != 1 || entry.r == nil {
			continue
		}
		key, okKey, err := entry.only(1)
		if err != nil || !okKey {
			return e, orExample(err)
		}
		value, okValue, err := entry.only(2)
		if err != nil || !okValue {
			return e, orExample(err)
		}
		name, err := key.text(1 << 10)
		if err != nil {
			return e, err
		}
		switch name {
		case "image/encoded":
			b, err := value.bytes()
			if err != nil {
				return e, fmt.Errorf("%s: %w", name, err)
			}
			e.offset, e.size = b.at, b.end-b.at
		case "image/class/label":
			if e.label, err = value.integer(); err != nil {
				return e, fmt.Errorf("%s: %w", name, err)
			}
			labelled = true
		case "image/class/synset":
			b, err := value.bytes()
			if err == nil {
				e.synset, err = b.text(256)
			}
			if err != nil {
				return e, fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	switch {
	case e.size == 0:
		return e, errNoEncoded
	case !labelled:
		return e, errNoRecLabel
	}
	return e, nil
}

func orExample(err error) error {
	if err == nil {
		err = errExample
	}
	return err
}

// bytes is the one value of a Feature's BytesList.
func (p proto) bytes() (proto, error) {
	list, ok, err := p.only(1)
	if err != nil || !ok {
		return proto{}, orExample(err)
	}
	value, ok, err := list.only(1)
	if err != nil || !ok {
		return proto{}, orExample(err)
	}
	return value, nil
}

// integer is the one value of a Feature's Int64List, packed or not.
func (p proto) integer() (int32, error) {
	list, ok, err := p.only(3)
	if err != nil || !ok {
		return 0, orExample(err)
	}
	tag, err := list.varint()
	if err != nil {
		return 0, err
	}
	switch tag {
	case 1<<3 | wireVarint:
	case 1<<3 | wireBytes:
		if _, err = list.varint(); err != nil {
			return 0, err
		}
	default:
		return 0, errExample
	}
	v, err := list.varint()
	if err != nil {
		return 0, err
	}
	if v >= maxClasses {
		return 0, fmt.Errorf("label %d is outside [0, %d)", int64(v), maxClasses)
	}
	return int32(v), nil
}
