package merge

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"onlinerna/train/extrapolate"
	"onlinerna/train/statedict"
)

// TestFlips flips bits of outputs, all of them with SOAK_FLIPS: each flip is found.
func TestFlips(t *testing.T) {
	step := 997
	if os.Getenv("SOAK_FLIPS") != "" {
		step = 1
	}
	dir := t.TempDir()
	s := series(t, 2, walk(t, dir, 2)...)
	s.Files()[1].Metadata = map[string]string{"ema_gamma": "6", "ema_step": "3", "epoch": "3"}
	for _, name := range []string{"out.safetensors", "out.pt", "out"} {
		out := filepath.Join(dir, name)
		o := Output{Path: out, ShardSize: 5000}
		o.Metadata = map[string]string{"merge": "mean"}
		if _, err := Write(t.Context(), s, extrapolate.Linear(Mean(2)), o); err != nil {
			t.Fatal(err)
		}
		check := func() error {
			f, err := statedict.Open(out, "")
			if err != nil {
				return err
			}
			defer f.Close()
			if m := f.Metadata; m["ema_gamma"]+m["ema_step"] != "" || m["epoch"] != "3" {
				return fmt.Errorf("metadata %v", m)
			}
			ok, err := f.Verify()
			if index := filepath.Join(out, indexName); err == nil && name == "out" {
				ok, err = statedict.VerifyIndex(index)
			}
			if err == nil && !ok {
				err = fmt.Errorf("%s has no checksums", out)
			}
			return err
		}
		if err := check(); err != nil {
			t.Fatal(err)
		}
		list := []string{out}
		if name == "out" {
			list, _ = filepath.Glob(filepath.Join(out, "*"))
		}
		for _, path := range list {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			fd, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			flips := 0
			for bit := 0; bit < 8*len(b); bit += step {
				flips++
				at := bit / 8
				fd.WriteAt([]byte{b[at] ^ 1<<(bit%8)}, int64(at))
				if err := check(); err == nil {
					t.Errorf("%s: bit %d of byte %d, %q", path, bit%8, at, b[max(at-20, 0):min(at+20, len(b))])
				} else if strings.Contains(err.Error(), "\n") {
					t.Errorf("%s: an error of several lines: %q", path, err)
				}
				fd.WriteAt(b[at:at+1], int64(at))
			}
			fd.Close()
			t.Logf("%s: %d flips of %d bytes", path, flips, len(b))
		}
	}
}
