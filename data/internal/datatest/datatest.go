// Package datatest makes the files that tests of data sets read.
package datatest

import (
	"archive/tar"
	"bytes"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"onlinerna/data/random"
)

// Picture is an image whose pixels depend on seed.
func Picture(width, height, seed int) image.Image {
	r := random.New(uint64(seed))
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

// JPEG is the file of a picture.
func JPEG(t testing.TB, width, height, seed int) []byte {
	var b bytes.Buffer
	if err := jpeg.Encode(&b, Picture(width, height, seed), nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// PNG is the file of a picture.
func PNG(t testing.TB, width, height, seed int) []byte {
	var b bytes.Buffer
	if err := png.Encode(&b, Picture(width, height, seed)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Write writes content to a file below dir, a slash-separated name, with its folders.
func Write(t testing.TB, dir, name string, content []byte) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// Member is a file of a tar archive.
type Member struct {
	Name    string
	Content []byte
}

// File is a member with content.
func File(name string, content []byte) Member { return Member{name, content} }

// Text is a member of text.
func Text(name, content string) Member { return Member{name, []byte(content)} }

// Tar is a tar archive. A member whose name ends with a slash is a folder.
func Tar(t testing.TB, members ...Member) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, m := range members {
		header := &tar.Header{Name: m.Name, Typeflag: tar.TypeReg, Size: int64(len(m.Content)), Mode: 0o644}
		if strings.HasSuffix(m.Name, "/") {
			header.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(m.Content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Close closes sets when the test ends, before their folders are removed.
func Close[T any](t testing.TB, sets ...T) {
	t.Cleanup(func() {
		for _, ds := range sets {
			if c, ok := any(ds).(io.Closer); ok {
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	})
}

// WantError fails unless err mentions every one of parts.
func WantError(t testing.TB, err error, parts ...string) {
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
