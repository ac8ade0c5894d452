package data

import (
	"archive/tar"
	"bytes"
	"hash/fnv"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// picture is an image whose pixels depend on seed.
func picture(width, height, seed int) image.Image {
	r := NewRand(uint64(seed))
	m := image.NewRGBA(image.Rect(0, 0, width, height))
	cx, cy := r.Uniform(0, float64(width)), r.Uniform(0, float64(height))
	for y := range height {
		for x := range width {
			d := (float64(x)-cx)*(float64(x)-cx) + (float64(y)-cy)*(float64(y)-cy)
			m.Set(x, y, color.RGBA{uint8(d), uint8(x * 255 / width), uint8(y * 255 / height), 255})
		}
	}
	return m
}

func encodeJPEG(t testing.TB, width, height, seed int) []byte {
	var b bytes.Buffer
	if err := jpeg.Encode(&b, picture(width, height, seed), nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func encodePNG(t testing.TB, width, height, seed int) []byte {
	var b bytes.Buffer
	if err := png.Encode(&b, picture(width, height, seed)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// write writes content to a file below dir, a slash-separated name, with its folders.
func write(t testing.TB, dir, name string, content []byte) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// member is a file of a tar archive.
type member struct {
	name    string
	content []byte
}

func text(name, content string) member { return member{name, []byte(content)} }

func tarball(t testing.TB, members ...member) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, m := range members {
		header := &tar.Header{Name: m.name, Typeflag: tar.TypeReg, Size: int64(len(m.content)), Mode: 0o644}
		if strings.HasSuffix(m.name, "/") {
			header.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(m.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// closeAtEnd closes a set when the test ends, before its folder is removed.
func closeAtEnd(t testing.TB, sets ...Dataset) {
	t.Cleanup(func() {
		for _, ds := range sets {
			if c, ok := ds.(io.Closer); ok {
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	})
}

// wantError fails unless err mentions every one of parts.
func wantError(t testing.TB, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one that mentions %q", parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not mention %q", err, part)
		}
	}
}

// fingerprint is a hash of every image of a set.
func fingerprint(t testing.TB, ds Dataset) uint64 {
	t.Helper()
	h := fnv.New64a()
	var s Scratch
	for i := range ds.Len() {
		img, err := ds.Read(i, nil, &s)
		if err != nil {
			t.Fatal(err)
		}
		h.Write([]byte{byte(ds.Label(i))})
		h.Write(img.Pix)
	}
	return h.Sum64()
}
