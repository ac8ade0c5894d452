package data

import "onlinerna/data/format"

// Encoded returns image i of ds as it is stored: the bytes of a JPEG or another image file. They are valid until the
// next use of s. ok is false for sets that store pixels.
func Encoded(ds Dataset, i int, s *Scratch) (b []byte, ok bool, err error) {
	switch d := ds.(type) {
	case *subset:
		return Encoded(d.Dataset, d.indices[i], s)
	case stored:
		if set, ok := d.Set.(format.Encoded); ok {
			s.Release()
			b, err = set.Encoded(i, &s.file)
			return b, true, err
		}
	}
	return nil, false, nil
}
