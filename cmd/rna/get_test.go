package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"onlinerna/internal/catalogue"
)

// digits are the files of a small IDX set, which this test program adds to its catalogue.
var digits = map[string][]byte{}

func init() {
	idx := func(magic uint32, dims ...uint32) []byte {
		b, n := binary.BigEndian.AppendUint32(nil, magic), uint32(1)
		for _, d := range dims {
			b, n = binary.BigEndian.AppendUint32(b, d), n*d
		}
		for i := range n {
			b = append(b, byte(i%2))
		}
		return b
	}
	set := catalogue.Item{Name: "test-digits", Kind: catalogue.Images, About: "of the tests",
		Classes: []string{"even", "odd"}}
	for _, name := range []string{
		"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte",
	} {
		b := idx(0x803, 40, 16, 16)
		if strings.Contains(name, "labels") {
			b = idx(0x801, 40)
		}
		digits[name] = b
		sum := sha256.Sum256(b)
		set.Files = append(set.Files, catalogue.File{
			Name: name, Size: int64(len(b)), SHA256: hex.EncodeToString(sum[:]), Addresses: []string{"http://127.0.0.1:1/" +
				name},
		})
	}
	catalogue.Register(set, catalogue.Item{Name: "test-lenet", Kind: catalogue.Weights, Net: "lenet",
		Files: []catalogue.File{{Name: "lenet-12345678.safetensors", Rough: true, SHA256: "12345678"}}})
}

// TestGet downloads a set and trains on it, from the user's folder.
func TestGet(t *testing.T) {
	cache := t.TempDir()
	t.Setenv(catalogue.Variable, cache)
	t.Chdir(t.TempDir())
	place := filepath.Join(cache, "data", "test-digits")
	fails := func(want []string, args ...string) {
		t.Helper()
		status, _, stderr := runRNA(t, args...)
		for _, w := range want {
			if status == 0 || !strings.Contains(stderr, w) {
				t.Errorf("rna %s: status %d, lacks %q:\n%s", strings.Join(args, " "), status, w, stderr)
			}
		}
	}
	fails([]string{`test-digits is not here: "rna get test-digits" downloads it`}, "train", "--data", "test-digits")
	fails([]string{`"rna get test-digits"`}, "logreg", "--data", "test-digits")
	fails([]string{`"rna get resnet18"`}, "train", "--init", "resnet18", "--model", "resnet18")
	fails([]string{"did you mean cifar10?"}, "get", "cifr10")
	fails([]string{"nothing that can be downloaded"}, "get", "lenet")
	fails([]string{"did you mean timm/x?"}, "get", "https://huggingface.co/timm/x/")
	fails([]string{"did you mean timm/x?"}, "get", "hf-hub:timm/x")
	first := digits["train-images-idx3-ubyte"]
	sum := sha256.Sum256(first)
	fails([]string{"http://127.0.0.1:1/train-images-idx3-ubyte", "10256 bytes, SHA-256 " + hex.EncodeToString(sum[:]),
		filepath.Join(place, "train-images-idx3-ubyte"), "connection refused"}, "get", "test-digits")

	var mu sync.Mutex
	asked := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked[path.Base(r.URL.Path)]++
		mu.Unlock()
		time.Sleep(50 * time.Millisecond) // so that the other process starts meanwhile
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(digits[path.Base(r.URL.Path)]))
	}))
	defer server.Close()
	var wait sync.WaitGroup
	for range 2 {
		wait.Go(func() {
			out, err := itself("get", "test-digits", "--mirror", server.URL+"/some").CombinedOutput()
			if err != nil || !strings.Contains(string(out), "test-digits is in "+place+": --data test-digits\n") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	wait.Wait()
	for name := range digits {
		if asked[name] != 1 {
			t.Errorf("%s was asked for %d times", name, asked[name])
		}
	}
	for range 2 {
		// checked without a server
		if out := mustRun(t, "get", "test-digits"); !strings.Contains(out, "--data test-digits") {
			t.Error(out)
		}
		out := strings.Join(strings.Fields(mustRun(t, "get")), " ")
		if !strings.Contains(out, "test-digits 0.0206 MB yes") {
			t.Error(out)
		}
		if out := mustRun(t, "data", "show", "test-digits"); !strings.Contains(out, "20  odd") {
			t.Error(out)
		}
		mustRun(t, "train", "--data", "Test_Digits", "--model", "lenet", "--epochs", "1", "--out", "run",
			"--rna", "off", "--batch", "4")
		place := filepath.Join(cache, "weights", "lenet-12345678.safetensors")
		if err := os.MkdirAll(filepath.Dir(place), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join("run", "best.safetensors"), place); err != nil {
			t.Fatal(err)
		}
		mustRun(t, "eval", "--weights", "test-lenet", "--data", "test-digits")
		mustRun(t, "inspect", "test-lenet")
		mustRun(t, "export", "test-lenet", "--out", "x.onnx")
		mustRun(t, "convert", "test-lenet", "x.pt")
		if err := os.RemoveAll("run"); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Truncate(filepath.Join(place, "t10k-labels-idx1-ubyte"), 20); err != nil {
		t.Fatal(err)
	}
	fails([]string{"20 bytes in place of the 48", "remove it"}, "get", "test-digits")
	fails([]string{`"rna get test-digits"`}, "data", "check", "test-digits")
}

// TestGetRepo downloads weights of the hub, which are then found by their name.
func TestGetRepo(t *testing.T) {
	cache := t.TempDir()
	t.Setenv(catalogue.Variable, cache)
	t.Setenv("HF_HOME", t.TempDir())
	t.Chdir(t.TempDir())
	short := strings.Fields("--data glyphs --limit-batches 1 --limit-val 1 --epochs 1 --rna off --out")
	train := func(args ...string) { mustRun(t, append(append([]string{"train"}, short...), args...)...) }
	train("run")
	weights, err := os.ReadFile(filepath.Join("run", "best.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(weights)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/api/models/some/net/") {
			fmt.Fprintf(w, `{"sha": "0123456789", "siblings": [{"rfilename": "model.safetensors",
				"lfs": {"size": %d, "sha256": "%x"}}]}`, len(weights), sum)
			return
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(weights))
	}))
	defer server.Close()
	if status, _, stderr := runRNA(t, "eval", "some/net"); status == 0 || !strings.Contains(stderr, `"rna get some/net"`) {
		t.Error(stderr)
	}
	t.Setenv("HF_ENDPOINT", server.URL)
	if out := mustRun(t, "get", "some/net"); !strings.Contains(out, "hub/some/net: --init some/net\n") {
		t.Error(out)
	}
	mustRun(t, "eval", "some/net", "--data", "glyphs")
	mustRun(t, "export", "some/net", "-o", "net.onnx")
	train("fine", "--init", "some/net")
}

// TestInterrupted tells the user how to continue an interrupted download or pack.
func TestInterrupted(t *testing.T) {
	t.Setenv(catalogue.Variable, t.TempDir())
	photos := photographs(t, 2, 16)
	t.Chdir(t.TempDir())
	ctx, stop := context.WithCancel(t.Context())
	stop()
	for _, args := range [][]string{{"get", "test-digits"}, {"data", "pack", photos, "packed"}} {
		var out, stderr bytes.Buffer
		status := run(ctx, args, &out, &stderr)
		if status != 130 || stderr.String() != "rna: interrupted: the same command goes on\n" {
			t.Errorf("rna %s: status %d, %q", args, status, stderr.String())
		}
	}
}
