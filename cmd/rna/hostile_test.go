package main

import (
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
)

// Names of classes and files are printed without control characters and written to CSV without formulas.
func TestHostileNames(t *testing.T) {
	dir := t.TempDir()
	names := []string{"=1+1\x1b]0;title\x07", "@b\u202e\nrna: forged"}
	for k, name := range names {
		for i := range 4 {
			for _, split := range []string{"train", "val"} {
				picture(t, filepath.Join(dir, "data", split, name, fmt.Sprintf("%d\x1b[2J.png", i)),
					color.RGBA{uint8(200 * k), 30, 90, 255}, 16)
			}
		}
	}
	plain := func(what string, status int, texts ...string) {
		for _, s := range texts {
			for i, r := range s {
				if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) ||
					strings.HasPrefix(s[i:], "\nrna: forged") {
					t.Errorf("%s (status %d): %q", what, status, s)
					return
				}
			}
		}
	}
	run := filepath.Join(dir, "run")
	status, out, err := runRNA(t, "train", "--data", filepath.Join(dir, "data"), "--model", "conv6", "--epochs", "1",
		"--batch", "4", "--rna", "off", "-o", run)
	plain("train", status, out, err)
	if status != 0 {
		t.Fatal(err)
	}
	weights := filepath.Join(run, "final.safetensors")
	for _, args := range [][]string{
		{"predict", "--weights", weights, filepath.Join(dir, "data", "val", names[0])},
		{"eval", "--weights", weights, "--data", filepath.Join(dir, "data"), "--per-class"},
		{"data", "check", filepath.Join(dir, "data")},
		{"weights", weights}, {"predict", "--weights", filepath.Join(dir, names[0])},
		{"\x1b]0;title\x07"},
	} {
		status, out, err := runRNA(t, args...)
		plain(strings.Join(args[:min(2, len(args))], " "), status, out, err)
	}
	csv := mustRun(t, "predict", "--csv", "--weights", weights, filepath.Join(dir, "data", "val"))
	all, confusion := filepath.Join(dir, "all.csv"), filepath.Join(dir, "confusion.csv")
	if status, _, err := runRNA(t, "eval", "--weights", weights, "--data", filepath.Join(dir, "data"), "--predictions",
		all,
		"--confusion", confusion); status != 0 {
		t.Fatal(err)
	}
	for _, file := range []string{all, confusion} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		csv += string(b)
	}
	for _, formula := range []string{",=1+1", ",\"=1+1", "\n=1+1", ",@b", ",\"@b", "\n\"@b"} {
		if strings.Contains(csv, formula) || !strings.Contains(csv, ",'=1+1") {
			t.Errorf("a formula: %s", csv)
		}
	}
}
