package audit

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"onlinerna/data"
)

func TestRun(t *testing.T) {
	dir := t.TempDir()
	put := func(name string, b []byte) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	encode := func(side int, asPNG bool) []byte {
		var b bytes.Buffer
		m := image.NewGray(image.Rect(0, 0, side, side))
		m.Pix[0] = uint8(side)
		err := error(nil)
		if asPNG {
			err = png.Encode(&b, m)
		} else {
			err = jpeg.Encode(&b, m, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	cmyk, err := os.ReadFile(filepath.Join("..", "imaging", "testdata", "cmyk.jpg"))
	if err != nil {
		t.Fatal(err)
	}
	put("train/a/1.jpg", encode(40, false))
	put("train/a/2.JPEG", encode(41, true))
	put("train/a/3.jpg", encode(42, false)[:200])
	put("train/a/4.jpg", cmyk)
	put("train/b/1.png", encode(8, true))
	put("train/b/2.jpg", encode(40, false)) // as a/1.jpg, another class
	put("train/b/3.jpg", encode(44, false))
	put("train/b/4.jpg", []byte("<html>"))
	put("val/b/1.jpg", encode(44, false))
	train, val, err := data.Open(dir, data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, workers := range []int{1, 3} {
		r, err := Run(context.Background(), train, val, Options{Tiny: 20, Workers: workers})
		if err != nil {
			t.Fatal(err)
		}
		names := func(list []Finding) string {
			var s []string
			for _, f := range list {
				rel, _ := filepath.Rel(dir, f.Name)
				s = append(s, filepath.ToSlash(rel)+" "+f.What)
			}
			return strings.Join(s, "; ")
		}
		if r.Images != 9 || r.Formats["jpg"] != 6 || r.Formats["png"] != 2 || r.Formats["unknown"] != 1 {
			t.Errorf("%d images, %v", r.Images, r.Formats)
		}
		if got := names(r.Unreadable); !strings.Contains(got, "a/3.jpg") || !strings.Contains(got, "b/4.jpg") ||
			len(r.Unreadable) != 2 {
			t.Errorf("unreadable: %s", got)
		}
		if got := names(r.Mislabeled); got != "train/a/2.JPEG is a PNG by its content; train/a/4.jpg is a JPEG of "+
			"CMYK inks" {
			t.Errorf("mislabeled: %s", got)
		}
		if got := names(r.Tiny); got != "train/b/1.png 8x8 pixels" {
			t.Errorf("tiny: %s", got)
		}
		if len(r.Duplicates) != 2 || r.Conflicts != 1 || r.Leaks != 1 {
			t.Errorf("duplicates %v, %d conflicts, %d leaks", r.Duplicates, r.Conflicts, r.Leaks)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Run(ctx, train, val, Options{}); err == nil {
		t.Error("no error once it is stopped")
	}
}

// TestBudget lists images that need more memory than the decoding budget.
func TestBudget(t *testing.T) {
	dir := t.TempDir()
	for i, side := range []int{20, 400} {
		var b bytes.Buffer
		if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, side, side))); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "train", string("ab"[i]), "x.png")
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755),
			os.WriteFile(path, b.Bytes(), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	set, _, err := data.Open(dir, data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	// 768 KiB for an image: the large one takes 1.1 MB
	r, err := Run(context.Background(), set, nil, Options{Budget: data.NewBudget(1<<20, 1)})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Unreadable) != 1 || r.Unreadable[0].Name != filepath.Join(dir, "train", "b", "x.png") ||
		!strings.Contains(r.Unreadable[0].What, "--decode-memory") {
		t.Errorf("unreadable: %+v", r.Unreadable)
	}
}
