package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"onlinerna/train"
	"onlinerna/train/statedict"
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

// TestVerifyTorchFlips flips the low bit of each byte of a file of PyTorch: no copy with other tensors is sound.
func TestVerifyTorchFlips(t *testing.T) {
	from := filepath.Join("..", "..", "train", "torchfile", "testdata", "plain.pt")
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	want, path := tensorsIn(t, from), filepath.Join(t.TempDir(), "plain.pt")
	found := 0
	for i := range b {
		b[i] ^= 1
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		b[i] ^= 1
		list, err := train.Verify(filepath.Dir(path))
		if err != nil {
			t.Fatal(err)
		}
		if list[0].Err != nil {
			found++
		} else if got := tensorsIn(t, path); list[0].Unread != "" || got != want {
			t.Errorf("byte %d: %+v", i, list[0])
		}
	}
	t.Logf("%d of %d found", found, len(b))
}

// tensorsIn is the text of all tensors of a file, empty if it cannot be read.
func tensorsIn(t *testing.T, path string) string {
	f, err := statedict.Open(path, "")
	if err != nil {
		return ""
	}
	defer f.Close()
	var s strings.Builder
	for _, x := range f.Tensors {
		b := make([]byte, x.Len()*x.DType.Size())
		if err := f.Read(b, x, 0); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&s, x.Name, x.DType, x.Shape, b)
	}
	return s.String()
}

// TestVerifyForeign verifies a folder with sound files that hold no weights; empty and zero files are damage.
func TestVerifyForeign(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "[a]b[") // no pattern
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(name, s string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(s), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("rng_state.pth", "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M\xe9\x03."+
		"\x80\x02}U\x0dlittle_endian\x88s.\x80\x02]K\x01a.\x80\x02].")
	text := write("distutils.pth", "import os; var = 'SETUPTOOLS_USE_DISTUTILS'\n")
	write("model.ckpt", "\x00\x00\x12\x08\x01 a table of TensorFlow")
	out := strings.Join(strings.Fields(mustRun(t, "verify", dir)), " ")
	if n := strings.Count(out, ": not read as weights: "); n != 3 {
		t.Errorf("%d files are not weights, want 3: %s", n, out)
	}
	fails(t, []string{"verify", text}, "1 of 1 damaged")
	write("empty.pt", "")
	write("zeros.pt", strings.Repeat("\x00", 1000))
	fails(t, []string{"verify", dir}, "2 of 5 damaged")
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
