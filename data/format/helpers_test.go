package format

import (
	"hash/fnv"
	"io"
	"slices"
	"testing"

	"onlinerna/data/imaging"
	"onlinerna/data/internal/datatest"
)

// openPlace opens the training set of a place, and the one to evaluate on with its classes.
func openPlace(path string, classes []string) (train, val Set, err error) {
	found, err := Find(path, "")
	if err != nil {
		return nil, nil, err
	}
	if train, err = found.Train(classes); err == nil && found.Eval != nil {
		val, err = found.Eval(train.Classes())
	}
	return train, val, err
}

func openBoth(t testing.TB, dir string) (train, val Set) {
	t.Helper()
	train, val, err := openPlace(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	datatest.Close(t, train)
	if val != nil {
		datatest.Close(t, val)
	}
	return train, val
}

// decode decodes image i of a set. An error of decoding names the image.
func decode(set Set, i int, b *Buffer) (*imaging.Image, error) {
	if p, ok := set.(Pixels); ok {
		part, err := p.Pixels(i, nil, b)
		return &imaging.Image{Width: part.Width, Height: part.Height, Channels: set.Channels(), Pix: part.Pix}, err
	}
	file, err := set.(Encoded).Encoded(i, b)
	if err != nil {
		return nil, err
	}
	m, err := imaging.Decode(file, set.Channels())
	if err != nil {
		return nil, &undecodable{set.Name(i), err}
	}
	return m, nil
}

type undecodable struct {
	name string
	error
}

func (e *undecodable) Error() string { return e.name + ": " + e.error.Error() }

func notesOf(set Set) []string {
	if n, ok := set.(Noted); ok {
		return n.Notes()
	}
	return nil
}

func closeSet(set Set) error {
	if c, ok := set.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// sameSets fails unless two places give the same images, labels and classes.
func sameSets(t testing.TB, got, want Set) {
	t.Helper()
	if !slices.Equal(got.Classes(), want.Classes()) {
		t.Errorf("classes %q, want %q", got.Classes(), want.Classes())
	}
	if got.Len() != want.Len() || fingerprint(t, got) != fingerprint(t, want) {
		t.Errorf("%d images, %d wanted, or other pixels or labels", got.Len(), want.Len())
	}
}

// fingerprint is a hash of every image of a set.
func fingerprint(t testing.TB, set Set) uint64 {
	t.Helper()
	h := fnv.New64a()
	var b Buffer
	for i := range set.Len() {
		img, err := decode(set, i, &b)
		if err != nil {
			t.Fatal(err)
		}
		h.Write([]byte{byte(set.Label(i))})
		h.Write(img.Pix)
	}
	return h.Sum64()
}
