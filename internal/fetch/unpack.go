package fetch

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"onlinerna/internal/files"
)

// maxEntries bounds the files and folders of an archive.
const maxEntries = 1 << 20

// unpack unpacks the one folder of a .tar.gz as the folder dir, which is there whole or not at all. Only files and
// folders are taken: a link, a name that leads out of the folder, a repeated file, or more than most bytes is an error.
func unpack(ctx context.Context, archive, dir string, most int64) error {
	work := dir + ".unpacking" // the caller has the lock, so existing files are left over
	if err := os.RemoveAll(work); err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if err := files.MkdirAll(work); err != nil {
		return err
	}
	if err := unpackTo(ctx, archive, work, most); err != nil {
		return err
	}
	syncAll()
	if err := files.Rename(work, dir); err != nil {
		return err
	}
	return files.SyncDir(filepath.Dir(dir))
}

func unpackTo(ctx context.Context, archive, dir string, most int64) error {
	in, err := files.Open(archive)
	if err != nil {
		return err
	}
	defer in.Close()
	z, err := gzip.NewReader(in)
	if err != nil {
		return err
	}
	r := tar.NewReader(z)
	top := ""
	for n := 0; ; n++ {
		h, err := r.Next()
		if err == io.EOF {
			_, err = io.Copy(io.Discard, io.LimitReader(z, most)) // to gzip's checksum
			return err
		}
		if err == nil {
			err = ctx.Err()
		}
		if err == nil && n == maxEntries {
			err = fmt.Errorf("more than %d files", n)
		}
		if err != nil {
			return err
		}
		if h.Typeflag == tar.TypeXGlobalHeader {
			continue
		}
		first, rest, _ := strings.Cut(path.Clean(h.Name), "/")
		if top == "" {
			top = first
		}
		if !filepath.IsLocal(filepath.FromSlash(h.Name)) || first != top || strings.ContainsRune(rest, '\\') {
			return fmt.Errorf("%q is not in the folder %q", h.Name, top)
		}
		to := filepath.Join(dir, filepath.FromSlash(rest))
		switch h.Typeflag {
		case tar.TypeDir:
			err = os.MkdirAll(to, 0o777)
		case tar.TypeReg:
			if most -= h.Size; most < 0 {
				return errors.New("more bytes than the data set has")
			}
			err = extract(r, to)
		default:
			err = errors.New("neither a file nor a folder")
		}
		if err != nil {
			return fmt.Errorf("%q: %w", h.Name, err)
		}
	}
}

func extract(in io.Reader, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return errors.New("there twice")
	}
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if e := out.Close(); err == nil {
		err = e
	}
	return err
}
