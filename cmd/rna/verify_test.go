package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestVerifyTorch verifies the files of torch.save in a folder: those without weights are whole, too.
func TestVerifyTorch(t *testing.T) {
	dir := t.TempDir()
	from := filepath.Join("..", "..", "train", "torchfile", "testdata")
	for _, name := range []string{"plain.pt", "torchvision.pth", "timm.pth.tar", "lightning.ckpt", "legacy.pt", "two.pt"} {
		b, err := os.ReadFile(filepath.Join(from, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), b, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	out := strings.Join(strings.Fields(mustRun(t, "verify", dir)), " ")
	for name, state := range map[string]string{"plain.pt": "whole", "torchvision.pth": "whole", "timm.pth.tar": "whole",
		"lightning.ckpt": "whole", "legacy.pt": "read; it has no checksums", "two.pt": "whole, but not read as weights: several state dicts, a, b"} {
		if !strings.Contains(out, filepath.Join(dir, name)+": "+state) {
			t.Errorf("%s is not %q:\n%s", name, state, out)
		}
	}
	for _, name := range []string{"plain.pt", "two.pt"} {
		path := filepath.Join(dir, name)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		at := bytes.Index(b, []byte("storage"))
		b[at] ^= 1
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		fails(t, []string{"verify", dir}, "1 of 6 damaged")
		b[at] ^= 1
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestVerifyRuns verifies a folder of runs, one of which has a name like a file of weights.
func TestVerifyRuns(t *testing.T) {
	runs := t.TempDir()
	odd := filepath.Join(runs, "a-vit0.safetensors")
	mustRun(t, append([]string{"train", "--epochs", "1", "-o", odd, "-q", "--rna", "off"}, quick[:6]...)...)
	deep := filepath.Join(runs, "study", "b")
	if err := os.CopyFS(deep, os.DirFS(odd)); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(runs, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	out := mustRun(t, "verify", runs)
	for _, file := range []string{filepath.Join(odd, "best.safetensors"), filepath.Join(deep, "final.safetensors"),
		filepath.Join(deep, "config.json")} {
		if !strings.Contains(strings.Join(strings.Fields(out), " "), file+": whole") {
			t.Errorf("no %s in\n%s", file, out)
		}
	}
	if n, each := strings.Count(out, "whole"), strings.Count(mustRun(t, "verify", odd), "whole"); n != 2*each {
		t.Errorf("%d files, want twice %d:\n%s", n, each, out)
	}
	if err := os.Truncate(filepath.Join(deep, "best.safetensors"), 1000); err != nil {
		t.Fatal(err)
	}
	fails(t, []string{"verify", runs}, "1 of ")
	fails(t, []string{"verify", filepath.Join(runs, "empty")}, "holds no run and no weights")
	kept := filepath.Join(t.TempDir(), "kept")
	if err := os.Mkdir(kept, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(deep, "final.safetensors"), filepath.Join(kept, "w.safetensors")); err != nil {
		t.Fatal(err)
	}
	if out := mustRun(t, "verify", filepath.Dir(kept)); strings.Count(out, "whole") != 1 {
		t.Errorf("a file is listed twice:\n%s", out)
	}
}
