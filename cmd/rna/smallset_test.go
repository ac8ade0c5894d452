package main

import (
	"os"
	"strings"
	"testing"
)

// A small set with an unreadable file and an empty class folder trains to the end, and both are reported.
func TestSmallSetWithFlaws(t *testing.T) {
	trained(t, "--val-split 0.25")
	if err := os.Mkdir("photos/empty", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("photos/cat/1.jpg", []byte("none"), 0o644); err != nil {
		t.Fatal(err)
	}
	const train = "train --data photos --val-split 0.25 --model conv6 --image-size 16 --batch 6 --accumulate 1 " +
		"--epochs 2 --lr 0.01 --rna off "
	out := said(t, train+"-o flawed")
	for _, want := range []string{"training images: warning: 1 of 3 classes without images: empty", "1 image unreadable"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in %s", want, out)
		}
	}
	if n := strings.Count(out, "photos/cat/1.jpg"); n != 1 {
		t.Errorf("the file is named %d times in %s", n, out)
	}
	said(t, train+"--max-bad 1 -o counted -q")
	said(t, train+"--max-bad 10% -o shared -q")
	for _, limit := range []string{"0", "5%"} {
		status, _, stderr := runRNA(t, strings.Fields(train+"-q -o none"+limit+" --max-bad "+limit)...)
		if status != 1 || !strings.Contains(stderr, "1 of 13 images so far cannot be read, max-bad allows 0") ||
			strings.Count(stderr, "epoch 1") != 1 {
			t.Errorf("--max-bad %s: status %d, %s", limit, status, stderr)
		}
	}
	status, _, stderr := runRNA(t, strings.Fields(train+"--max-bad 1.5")...)
	if status != 2 || !strings.Contains(stderr, "a count, as 20") {
		t.Errorf("status %d, %s", status, stderr)
	}
	if eval := said(t, "eval flawed"); strings.Contains(eval, "top-5") || !strings.Contains(eval, "top-1") {
		t.Errorf("of three classes: %s", eval)
	}
}
