package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"onlinerna/data"
)

// The same images train ResNet-18 to the same losses from every layout: parquet, ImageNet's archive, folders, packed
// and raw.
func TestLayoutsTrainAlike(t *testing.T) {
	parquet, dir := filepath.Join("..", "..", "data", "format", "testdata", "parquet", "sorted"), t.TempDir()
	place := func(name string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	put := func(path string, content []byte) {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	set, _, err := data.Open(parquet, data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer set.(io.Closer).Close()

	type file struct {
		name    string
		content []byte
	}
	pack := func(files []file) []byte {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, f := range files {
			if err := w.WriteHeader(&tar.Header{Name: f.name, Size: int64(len(f.content)), Mode: 0o644}); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write(f.content); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	official, folders := place("official"), place("folders")
	inner := make([][]file, len(set.Classes()))
	var s data.Scratch
	for i := range set.Len() {
		b, _, err := data.Encoded(set, i, &s)
		if err != nil {
			t.Fatal(err)
		}
		class := set.Classes()[set.Label(i)]
		f := file{fmt.Sprintf("%s_%02d.JPEG", class, i), bytes.Clone(b)}
		inner[set.Label(i)] = append(inner[set.Label(i)], f)
		put(filepath.Join(folders, "train", class, f.name), f.content)
	}
	var outer []file
	for label, files := range inner {
		outer = append(outer, file{set.Classes()[label] + ".tar", pack(files)})
	}
	put(filepath.Join(official, "ILSVRC2012_img_train.tar"), pack(outer))
	command := func(args ...string) {
		t.Helper()
		var out bytes.Buffer
		if status := run(t.Context(), args, &out, &out); status != 0 {
			t.Fatalf("rna %s: exit status %d:\n%s", strings.Join(args, " "), status, out.String())
		}
	}
	packed, raw := filepath.Join(dir, "packed"), filepath.Join(dir, "raw")
	command("data", "pack", official, packed, "--size", "64")
	command("data", "pack", parquet, raw, "--raw", "64")

	var want []float64
	for _, from := range []string{parquet, official, folders, packed, raw} {
		out := filepath.Join(dir, "run-"+filepath.Base(from))
		command("train", "--data", from, "--model", "resnet18", "--image-size", "32", "--augment", "imagenet", "--batch",
			"4", "--epochs", "1", "--limit-batches", "2",
			"--rna", "off", "--device", "cpu", "--workers", "2", "--quiet", "--out", out)
		b, err := os.ReadFile(filepath.Join(out, "metrics.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		var losses []float64
		for line := range strings.Lines(string(b)) {
			var record struct {
				Kind string
				Loss float64
			}
			if err := json.Unmarshal([]byte(line), &record); err != nil {
				t.Fatal(err)
			}
			if record.Kind == "step" {
				losses = append(losses, record.Loss)
			}
		}
		if want == nil {
			want = losses
		}
		if len(losses) != 2 || !slices.Equal(losses, want) {
			t.Errorf("%s: losses %v, want %v", from, losses, want)
		}
	}
}
