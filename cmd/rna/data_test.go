package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// photographs writes a set of two classes with n training images each, and half as many validation images.
func photographs(t *testing.T, n, side int) string {
	t.Helper()
	dir := t.TempDir()
	for i := range 3 * n {
		m := image.NewRGBA(image.Rect(0, 0, side+i, side))
		for k := range m.Pix {
			m.Pix[k] = uint8(k * (i + 3) / 7)
		}
		var b bytes.Buffer
		if err := jpeg.Encode(&b, m, nil); err != nil {
			t.Fatal(err)
		}
		split := "train"
		if i >= 2*n {
			split = "val"
		}
		path := filepath.Join(dir, split, []string{"cat", "dog"}[i%2], fmt.Sprintf("%d.jpg", i))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestDataCommands(t *testing.T) {
	in, dir := photographs(t, 3, 40), t.TempDir()
	packed, raw := filepath.Join(dir, "packed"), filepath.Join(dir, "raw")
	command := func(want int, args ...string) string {
		t.Helper()
		var out bytes.Buffer
		if got := run(t.Context(), append([]string{"data"}, args...), &out, &out); got != want {
			t.Fatalf("rna data %s: exit status %d, want %d:\n%s", strings.Join(args, " "), got, want, out.String())
		}
		return out.String()
	}
	if out := command(0, "pack", in, packed, "--size", "32", "--quality", "80"); !strings.Contains(out,
		"train: 6 of 6 images (0 copied as they are) in 1 file of") {
		t.Error(out)
	}
	command(0, "pack", packed, raw, "--raw", "24")
	sheet := filepath.Join(dir, "sheet.png")
	if out := command(0, "show", raw, "--out", sheet, "--image-size", "20", "--augment",
		"imagenet"); !strings.Contains(out, "3  cat") ||
		!strings.Contains(out, "20×20×3") || !strings.Contains(out, "of these 6: mean") {
		t.Error(out)
	}
	f, err := os.Open(sheet)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if c, err := png.DecodeConfig(f); err != nil || c.Width < 3*128 || c.Height < 2*128 { // tiles of 128 pixels or more
		t.Errorf("sheet %+v, %v", c, err)
	}
	command(0, "show", packed, "--out", sheet, "--eval")
	var out bytes.Buffer
	if status := run(t.Context(), []string{"bench", "data", packed, "--image-size", "8", "--sample", "eval", "--seconds",
		"0.01", "--fast-decode"}, &out, &out); status != 0 ||
		!strings.Contains(out.String(), "6 of 6 images are decoded smaller; their samples differ by ") {
		t.Error(status, out.String())
	}
	command(0, "check", packed)
	if err := os.WriteFile(filepath.Join(in, "train", "cat", "bad.jpg"), []byte("no image"), 0o644); err != nil {
		t.Fatal(err)
	}
	report := filepath.Join(dir, "report.json")
	if out := command(1, "check", in, "--json-file", report); !strings.Contains(out, "cannot be read: 1") ||
		!strings.Contains(out, "1 of 10 images cannot be read") {
		t.Error(out)
	}
	b, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	var r struct {
		Images     int
		Unreadable []struct{ Name string }
	}
	if err := json.Unmarshal(b, &r); err != nil || r.Images != 10 || len(r.Unreadable) != 1 ||
		!strings.HasSuffix(r.Unreadable[0].Name, "bad.jpg") {
		t.Errorf("report %+v, %v", r, err)
	}
	if out := command(1, "check", in, "--decode-memory", "1kB"); !strings.Contains(out, "cannot be read: 10") ||
		!strings.Contains(out, "more than the 0.00075 MB") {
		t.Error(out)
	}
	if out := command(1, "pack", in, packed+"2", "--decode-memory", "1kB"); !strings.Contains(out,
		".jpg: decoding it takes ") || !strings.Contains(out, "more than the 0.00075 MB") {
		t.Error(out)
	}
	command(0, "pack", in, packed+"2")
	command(1, "pack", in, packed)
	command(2, "pack", in)
	command(2, "pack", in, raw+"2", "--raw", "24", "--size", "3")
	command(2, "show", in, "--count", "0")
	command(1, "check", filepath.Join(dir, "nowhere"))
}
