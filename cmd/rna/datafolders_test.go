package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestClassFolders runs the data commands on class folders alone, twice, in the folder of their outputs.
func TestClassFolders(t *testing.T) {
	from := photographs(t, 5, 40)
	t.Chdir(t.TempDir())
	if err := os.Rename(filepath.Join(from, "train"), "photos"); err != nil {
		t.Fatal(err)
	}
	says := func(args string, want ...string) {
		t.Helper()
		status, out, stderr := runRNA(t, strings.Fields(args)...)
		for _, w := range want {
			if status != 0 || !strings.Contains(out+stderr, w) {
				t.Errorf("rna %s: status %d, lacks %q:\n%s%s", args, status, w, out, stderr)
			}
		}
	}
	for range 2 {
		says("data check photos --json-file report.json", "train: 10 images of 2 classes", "10 images: 10 jpg")
		says("data show photos", "5  cat", "sheet.png: 10 images")
		says("data show photos --eval --val-split 20% --count 4", "val: 2 images", "sheet.png: 2 images")
		says("bench data photos --image-size 8 --seconds 0.01 --json-file b.json", "train: 10 images of 2 classes")
		says("bench train --model conv6 --data photos --batch 2 --steps 1 --warmup 1 --input loader --json-file n.json",
			"images/s")
		says("data pack photos all --raw 24", "train: 10 of 10 images")
		says("data pack photos parts --raw 24 --val-split 0.2", "train: 8 of 8 images", "val: 2 of 2 images")
		says("data check parts", "val: 2 images of 2 classes", "for training and validation both")
		for _, dir := range []string{"all", "parts"} {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		}
	}
	for args, want := range map[string]string{
		"data show photos --eval":                          "photos: has no validation images: --val-split 0.2",
		"data pack photos parts --val-split 2":             "2",
		"data show photos --val-split 0.2 --val-data else": "choose one",
		"train --data photos":                              "--val-split 0.2",
	} {
		if status, _, stderr := runRNA(t, strings.Fields(args)...); status == 0 || !strings.Contains(stderr, want) {
			t.Errorf("rna %s: status %d, %s", args, status, stderr)
		}
	}
}
