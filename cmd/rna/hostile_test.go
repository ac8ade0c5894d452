package main

import (
	"bytes"
	"encoding/json"
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

// Text in the files of a run is printed without control characters.
func TestHostileRun(t *testing.T) {
	const bad = "\x1b[8m\x1b]0;title\x07\u202ex"
	dir := t.TempDir()
	run, other := filepath.Join(dir, "run"), filepath.Join(dir, "other")
	for _, out := range []string{run, other} {
		mustRun(t, "train", "--model", "lenet", "--limit-batches", "1", "--limit-val", "1", "--epochs", "1", "--rna", "off",
			"-q", "-o", out)
	}
	path := filepath.Join(run, "metrics.jsonl")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(bad)
	if err != nil {
		t.Fatal(err)
	}
	line := fmt.Sprintf(`"others":[{"kind":%s,"score":{"loss":1,"images":1}}],"rna":{"status":%s},"train":`, text, text)
	b = bytes.Replace(b, []byte(`"train":`), []byte(line), 1)
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	wrong := filepath.Join(dir, "wrong")
	if err := os.MkdirAll(wrong, 0o755); err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf(`{"model": "lenet", "optimizer": %s}`, text)
	for name, content := range map[string]string{"config.json": config, "metrics.jsonl": ""} {
		if err := os.WriteFile(filepath.Join(wrong, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	shown := 0
	for _, args := range [][]string{
		{"watch", run}, {"runs", dir}, {"compare", run, other, wrong}, {"runs", wrong},
		{"report", run, other, wrong, "-o", filepath.Join(dir, "page.html")},
	} {
		_, out, err := runRNA(t, args...)
		for i, r := range out + err {
			if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
				t.Errorf("%s: %q", args[0], (out + err)[max(0, i-60):])
				break
			}
		}
		if strings.Contains(out+err, `\x1b[8m`) {
			shown++
		}
	}
	if shown < 4 {
		t.Errorf("%d commands show the text", shown)
	}
}
