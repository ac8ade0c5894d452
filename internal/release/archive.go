package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/flate"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"
)

// An entry is a file of an archive, or a folder if it has no content and its name ends in a slash.
type entry struct {
	name    string
	content []byte
	mode    fs.FileMode
}

// archive writes rna-VERSION-SYSTEM-PROCESSOR.tar.gz, for Windows .zip, and the SBOM beside it.
func (r *release) archive(p *program) error {
	name := fmt.Sprintf("rna-%s-%s-%s", r.version, p.system, p.processor)
	exe, ext, pack := "rna", ".tar.gz", packTar
	if p.system == "windows" {
		exe, ext, pack = "rna.exe", ".zip", packZip
	}
	var list []entry
	for _, e := range append(slices.Clone(r.common), entry{exe, p.binary, 0o755}, entry{"sbom.cdx.json", p.sbom, 0o644}) {
		e.name = path.Join(name, e.name)
		list = append(list, e)
	}
	var b bytes.Buffer
	if err := pack(&b, list, r.when); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(r.out, name+".cdx.json"), p.sbom, 0o666); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, name+ext), b.Bytes(), 0o666)
}

func sorted(list []entry) []entry {
	return slices.SortedFunc(slices.Values(list), func(a, b entry) int { return cmp.Compare(a.name, b.name) })
}

// packTar writes a tar compressed by gzip.
func packTar(w io.Writer, list []entry, when time.Time) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	if err := writeTar(z, list, when); err != nil {
		return err
	}
	return z.Close()
}

func writeTar(w io.Writer, list []entry, when time.Time) error {
	t := tar.NewWriter(w)
	for _, e := range sorted(list) {
		h := &tar.Header{Name: e.name, Mode: int64(e.mode.Perm()), Size: int64(len(e.content)), ModTime: when,
			Typeflag: tar.TypeReg, Format: tar.FormatUSTAR}
		if e.mode&fs.ModeSticky != 0 {
			h.Mode |= 0o1000
		}
		if e.content == nil {
			h.Typeflag = tar.TypeDir
		}
		if err := t.WriteHeader(h); err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
		if _, err := t.Write(e.content); err != nil {
			return err
		}
	}
	return t.Close()
}

func packZip(w io.Writer, list []entry, when time.Time) error {
	z := zip.NewWriter(w)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(w, flate.BestCompression)
	})
	for _, e := range sorted(list) {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: when}
		h.SetMode(e.mode)
		f, err := z.CreateHeader(h)
		if err == nil {
			_, err = f.Write(e.content)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
	}
	return z.Close()
}
