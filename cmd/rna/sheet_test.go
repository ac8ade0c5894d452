package main

import (
	"fmt"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"onlinerna/internal/sheet"
)

// sizeOf is the width and the height of a PNG.
func sizeOf(t *testing.T, path string) (width, height int) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c, err := png.DecodeConfig(f)
	if err != nil {
		t.Fatal(err)
	}
	return c.Width, c.Height
}

// TestSheets draws sheets of images with a class name that the font lacks, which gives a message, and with an
// unreadable image.
func TestSheets(t *testing.T) {
	t.Chdir(t.TempDir())
	for i, c := range []string{"猫", "dog"} {
		for k := range 6 {
			picture(t, filepath.Join("photos", c, fmt.Sprint(k, ".png")), color.RGBA{uint8(200 * i), 50, 90, 255}, 40)
		}
	}
	runRNA(t, "train", "--data", "photos", "--val-split", "0.3", "--model", "conv6", "--image-size", "16", "--epochs",
		"1", "--batch", "2", "--rna", "off", "-o", "run", "-q")
	out := mustRun(t, "eval", "--weights", "run/best.safetensors", "--data", "photos", "--all-images", "--worst",
		"worst.png", "--group-by", "class")
	if !strings.Contains(out, "worst.png: 12 images with losses from ") || !strings.Contains(out, "no glyphs for some "+
		"characters of class 1 猫") {
		t.Error(out)
	}
	if w, h := sizeOf(t, "worst.png"); w < 6*sheet.Side || h < 2*sheet.Side {
		t.Errorf("a sheet of %d×%d", w, h)
	}
	if err := os.WriteFile("photos/dog/broken.png", []byte("no image"), 0o644); err != nil {
		t.Fatal(err)
	}
	status, out, said := runRNA(t, "predict", "photos", "--weights", "run/best.safetensors", "--sheet", "p.png",
		"--sheet-count", "7", "--group-by", "prediction", "--csv", "--top", "1")
	if status != 1 || strings.Count(out, "\n") != 13 || !strings.Contains(said, "p.png: 7 of 12 images") ||
		!strings.Contains(said, "broken.png") {
		t.Errorf("%d, %q, %q", status, out, said)
	}
	for view, width := range map[string]int{"both": 2 * sheet.Side, "original": sheet.Side, "network": sheet.Side} {
		out := mustRun(t, "data", "show", "photos", "--count", "4", "--view", view, "--image-size", "16")
		if w, _ := sizeOf(t, "sheet.png"); !strings.Contains(out, "sheet.png: 4 images") || w < 2*width {
			t.Errorf("--view %s: %d pixels wide, %s", view, w, out)
		}
	}
	for _, c := range []struct{ args, want string }{
		{"data show photos --view x", "want both, original, network"},
		{"data show photos --group-by prediction", "want none or class"},
		{"data show photos --out x.gif", "it is written as .png"},
		{"data show photos --font photos/dog/0.png", "no TrueType or OpenType font"},
		{"predict photos --weights run/best.safetensors --sheet-count 0", "want 1 to 2000"},
		{"predict photos --weights run/best.safetensors --group-by class", "want none or prediction"},
		{"predict photos --weights run/best.safetensors --sheet photos/dog/1.png", "name another output"},
		{"predict photos --weights run/best.safetensors --sheet x.svg", "it is written as .png"},
	} {
		if status, _, stderr := runRNA(t, strings.Fields(c.args)...); status != 2 || !strings.Contains(stderr, c.want) {
			t.Errorf("rna %s: %d, %s", c.args, status, stderr)
		}
	}
}
