package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"
)

func example(t *testing.T) (*release, *program) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		t.Fatal("no build information")
	}
	r := &release{out: t.TempDir(), version: "v1.2.3", commit: "abc", when: time.Unix(1e9, 0).UTC(),
		common: []entry{{"LICENSE", []byte("free"), 0o644}, {"man/man1/rna.1", []byte(".TH"), 0o644}}}
	info.Deps = append(info.Deps, &debug.Module{Path: "example.org/a", Version: "v2.0.0+incompatible", Sum: "h1:x="})
	sbom, err := r.sbom(info, sha256.Sum256(nil))
	if err != nil {
		t.Fatal(err)
	}
	return r, &program{"linux", "arm64", []byte("\x7fELF"), sbom}
}

func TestSBOM(t *testing.T) {
	_, p := example(t)
	var b bom
	if err := json.Unmarshal(p.sbom, &b); err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(
		b.Serial) {
		t.Error(b.Serial)
	}
	last := b.Components[len(b.Components)-1]
	if last.Purl != "pkg:golang/example.org/a@v2.0.0%2Bincompatible" || last.Properties[0].Value != "h1:x=" ||
		b.Components[0].Name != "std" || len(b.Dependencies[0].On) != len(b.Components) ||
		b.Metadata.Timestamp != "2001-09-09T01:46:40Z" || b.Metadata.Component.Version != "v1.2.3" {
		t.Errorf("%s", p.sbom)
	}
}

// Archives have the files with their modes, and equal bytes for another order of them.
func TestArchives(t *testing.T) {
	r, p := example(t)
	if err := r.archive(p); err != nil {
		t.Fatal(err)
	}
	p.system = "windows"
	if err := r.archive(p); err != nil {
		t.Fatal(err)
	}
	read := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join(r.out, name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	packed := read("rna-v1.2.3-linux-arm64.tar.gz")
	var list []string
	for name, e := range untar(t, packed) {
		list = append(list, fmt.Sprintf("%s %o", name, e.mode))
	}
	slices.Sort(list)
	const dir = "rna-v1.2.3-linux-arm64/"
	want := []string{dir + "LICENSE 644", dir + "man/man1/rna.1 644", dir + "rna 755", dir + "sbom.cdx.json 644"}
	if !slices.Equal(list, want) {
		t.Error(list)
	}
	other := read("rna-v1.2.3-windows-arm64.zip")
	z, err := zip.NewReader(bytes.NewReader(other), int64(len(other)))
	if err != nil || z.File[2].Name != "rna-v1.2.3-windows-arm64/rna.exe" || z.File[2].Mode() != 0o755 {
		t.Errorf("%v %+v", err, z)
	}
	slices.Reverse(r.common)
	p.system = "linux"
	if err := r.archive(p); err != nil || !bytes.Equal(read("rna-v1.2.3-linux-arm64.tar.gz"), packed) {
		t.Error("the order of files changes the archive", err)
	}
	if err := r.checksums(); err != nil {
		t.Fatal(err)
	}
	line := fmt.Sprintf("%x  rna-v1.2.3-linux-arm64.tar.gz\n", sha256.Sum256(packed))
	if sums := string(read("SHA256SUMS")); !strings.Contains(sums, line) || strings.Count(sums, "\n") != 4 {
		t.Error(sums)
	}
}

func untar(t *testing.T, b []byte) map[string]entry {
	t.Helper()
	var from io.Reader = bytes.NewReader(b)
	if z, err := gzip.NewReader(from); err == nil {
		from = z
	} else {
		from = bytes.NewReader(b)
	}
	all := map[string]entry{}
	for r := tar.NewReader(from); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		content, err2 := io.ReadAll(r)
		if errors.Join(err, err2) != nil {
			t.Fatal(err, err2)
		}
		all[h.Name] = entry{h.Name, content, h.FileInfo().Mode().Perm()}
	}
}

// Each blob of the image has the digest by which it is named and the size that is said, from the index to the layer.
func TestImage(t *testing.T) {
	r, p := example(t)
	second := *p
	second.processor, second.binary = "amd64", []byte("other")
	if err := r.image([]*program{p, &second}); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(r.out, "rna-v1.2.3-oci.tar"))
	if err != nil {
		t.Fatal(err)
	}
	files := untar(t, b)
	follow := func(d descriptor, v any) []byte {
		content := files["blobs/"+strings.Replace(d.Digest, ":", "/", 1)].content
		if got := fmt.Sprintf("sha256:%x", sha256.Sum256(content)); got != d.Digest || len(content) != d.Size {
			t.Errorf("%+v has %s, %d bytes", d, got, len(content))
		}
		if v != nil {
			if err := json.Unmarshal(content, v); err != nil {
				t.Error(err)
			}
		}
		return content
	}
	var top, index manifest
	if err := json.Unmarshal(files["index.json"].content, &top); err != nil || len(top.Manifests) != 1 {
		t.Fatal(err)
	}
	follow(top.Manifests[0], &index)
	if len(index.Manifests) != 2 {
		t.Fatalf("%+v", index)
	}
	for i, q := range []*program{p, &second} {
		var m manifest
		var c struct {
			Architecture string
			RootFS       struct {
				Diffs []string `json:"diff_ids"`
			}
		}
		follow(index.Manifests[i], &m)
		follow(*m.Config, &c)
		layer := follow(m.Layers[0], nil)
		z, err := gzip.NewReader(bytes.NewReader(layer))
		if err != nil {
			t.Fatal(err)
		}
		raw, _ := io.ReadAll(z)
		inside := untar(t, layer)
		if c.Architecture != q.processor || c.RootFS.Diffs[0] != fmt.Sprintf("sha256:%x", sha256.Sum256(raw)) ||
			!bytes.Equal(inside["usr/local/bin/rna"].content, q.binary) || inside["usr/local/bin/rna"].mode != 0o755 {
			t.Errorf("%+v %+v", c, inside)
		}
	}
}
