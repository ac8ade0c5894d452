package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"onlinerna/train/evaluate"
)

// TestJSONAlone checks that eval --json names the chosen one of several state dicts on standard error: standard output
// is JSON, or nothing.
func TestJSONAlone(t *testing.T) {
	several := filepath.Join("..", "..", "train", "torchfile", "testdata", "timm.pth.tar")
	_, out, said := runRNA(t, "eval", "--json", "--weights", several, "--model", "lenet", "--data", "glyphs", "--device",
		"cpu")
	if out != "" || !strings.Contains(said, "the state dict under state_dict") {
		t.Errorf("output %q, error %q", out, said)
	}
}

// TestEvalReport writes the report of a run as JSON, as a table and as figures.
func TestEvalReport(t *testing.T) {
	dir := t.TempDir()
	mustRun(t, append([]string{"train", "--epochs", "1", "-o", filepath.Join(dir, "run"), "-q", "--rna", "off"},
		quick[:6]...)...)
	confusion := filepath.Join(dir, "c.csv")
	_, out, _ := runRNA(t, "eval", "--weights", filepath.Join(dir, "run", "final.safetensors"), "--json", "--confusion",
		confusion)
	var got evaluate.Report
	if err := json.Unmarshal([]byte(out), &got); err != nil || got.Score.Images == 0 || len(got.Classes) != 10 {
		t.Errorf("%v: %.300s", err, out)
	}
	if b, err := os.ReadFile(confusion); err != nil || strings.Count(string(b), "\n") != 11 {
		t.Errorf("%q, %v", b, err)
	}
	svg, sheet, list := filepath.Join(dir, "c.svg"), filepath.Join(dir, "worst.png"), filepath.Join(dir, "p.csv")
	out = mustRun(t, "eval", "--weights", filepath.Join(dir, "run", "final.safetensors"), "--confusion", svg, "--worst",
		sheet, "--worst-count", "5", "--predictions", list)
	if !strings.Contains(out, sheet+": 5 images with losses from ") {
		t.Error(out)
	}
	if b, err := os.ReadFile(svg); err != nil || !strings.Contains(string(b), ">predicted<") {
		t.Errorf("%.300s, %v", b, err)
	}
	if width, height := sizeOf(t, sheet); width < 3*128 || height < 2*128 {
		t.Errorf("a sheet of %d×%d", width, height)
	}
	if out := mustRun(t, "eval", "--weights", filepath.Join(dir, "run", "final.safetensors"), "--val-split",
		"0.01"); !strings.Contains(out, "on 40 images: ") {
		t.Errorf("the part of a validation split: %s", out)
	}
	for arg, want := range map[string]string{"--worst=x.gif": "it is written as .png",
		"--worst-count=0": "want 1 to 2000", "--confusion=x.gif": "x.gif"} {
		if status, _, err := runRNA(t, "eval", "--weights", "x", arg); status != 2 || !strings.Contains(err, want) {
			t.Errorf("%s: status %d, %q", arg, status, err)
		}
	}
}
