package pack

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"onlinerna/data"
	"onlinerna/data/format"
	"onlinerna/data/imaging"
	"onlinerna/data/random"
)

func picture(width, height, seed int) image.Image {
	r := random.New(uint64(seed))
	m := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			m.Set(x, y, color.RGBA{uint8(x * 255 / width), uint8(y * 255 / height), uint8(r.IntN(60)), 255})
		}
	}
	return m
}

// source writes images of two classes: large ones, small ones, a PNG called .JPEG, one that is cut short.
func source(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for i := range 14 {
		var b bytes.Buffer
		m := picture(40+i, 30+2*i, i)
		if i == 5 {
			m = picture(20, 16, i)
		}
		err := jpeg.Encode(&b, m, nil)
		if i == 6 {
			b.Reset()
			err = png.Encode(&b, picture(22, 18, i))
		}
		if err != nil {
			t.Fatal(err)
		}
		if i == 8 {
			b.Truncate(300)
		}
		split := "train"
		if i >= 11 {
			split = "val"
		}
		path := filepath.Join(dir, split, []string{"cat", "dog"}[i%2], fmt.Sprintf("..%d.JPEG", i))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func open(t testing.TB, dir string) (train, val data.Dataset) {
	t.Helper()
	train, val, err := data.Open(dir, data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, ds := range []data.Dataset{train, val} {
			if c, ok := ds.(io.Closer); ok {
				c.Close()
			}
		}
	})
	return train, val
}

// content is the files of a folder.
func content(t testing.TB, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = string(b)
	}
	return files
}

func sameFiles(t testing.TB, got, want string) {
	t.Helper()
	g, w := content(t, got), content(t, want)
	for name := range w {
		if g[name] != w[name] {
			t.Errorf("%s differs", name)
		}
	}
	if len(g) != len(w) {
		t.Errorf("%d files, want %d", len(g), len(w))
	}
}

var options = Options{Size: 24, Quality: 80, ShardBytes: 6000}

// TestBudget: packing stops at an image beyond the decoding budget; resumed with a larger budget it gives the same
// bytes.
func TestBudget(t *testing.T) {
	in := source(t)
	largest, err := os.ReadFile(filepath.Join(in, "val", "dog", "..13.JPEG"))
	if err != nil {
		t.Fatal(err)
	}
	takes, err := imaging.Memory(largest, 3, image.Rect(0, 0, 53, 56))
	if err != nil {
		t.Fatal(err)
	}
	train, val := open(t, in)
	o := options
	o.Budget = data.NewBudget(takes*4/3-4, 1) // an image may take three quarters of it
	out, whole := filepath.Join(t.TempDir(), "out"), filepath.Join(t.TempDir(), "whole")
	if _, err := Run(context.Background(), train, val, out, o); !errors.Is(err, data.ErrTooLarge) ||
		!strings.Contains(err.Error(), "..13.JPEG: ") || !strings.Contains(err.Error(), "--decode-memory") {
		t.Fatalf("error %v", err)
	}
	for to, o := range map[string]Options{out: {Budget: data.NewBudget(2*takes, 1)}, whole: {}} {
		o.Size, o.Quality, o.ShardBytes = options.Size, options.Quality, options.ShardBytes
		if _, err := Run(context.Background(), train, val, to, o); err != nil {
			t.Fatal(err)
		}
	}
	sameFiles(t, out, whole)
}

func TestPack(t *testing.T) {
	in, out := source(t), filepath.Join(t.TempDir(), "out")
	train, val := open(t, in)
	report, err := Run(context.Background(), train, val, out, options)
	if err != nil {
		t.Fatal(err)
	}
	s := report.Splits[0]
	if s.Images != 11 || s.Kept() != 10 || s.Copied != 2 || len(s.Shards) < 2 || !report.Complete {
		t.Errorf("%+v", report)
	}
	if len(s.Dropped) != 1 || !strings.HasSuffix(s.Dropped[0].Name, "..8.JPEG") ||
		!strings.Contains(s.Dropped[0].Why, "cut short") {
		t.Errorf("dropped %+v", s.Dropped)
	}
	packed, packedVal := open(t, out)
	if packed.Len() != 10 || packedVal.Len() != 3 || !slices.Equal(packed.Classes(), train.Classes()) {
		t.Fatalf("%d and %d images of %q", packed.Len(), packedVal.Len(), packed.Classes())
	}
	var a, b data.Scratch
	k := 0
	for i := range train.Len() {
		from, _, err := data.Encoded(train, i, &a)
		if err != nil {
			t.Fatal(err)
		}
		w, h, err := imaging.Dimensions(from)
		if err != nil || strings.HasSuffix(train.Name(i), "..8.JPEG") {
			continue
		}
		to, _, err := data.Encoded(packed, k, &b)
		if err != nil {
			t.Fatal(err)
		}
		if train.Label(i) != packed.Label(k) {
			t.Errorf("%s has the label %d, want %d", packed.Name(k), packed.Label(k), train.Label(i))
		}
		if min(w, h) <= 24 {
			if !bytes.Equal(from, to) {
				t.Errorf("%s is not copied as it is", train.Name(i))
			}
		} else if pw, ph, err := imaging.Dimensions(to); err != nil || min(pw, ph) != 24 {
			t.Errorf("%s is %dx%d (%v)", packed.Name(k), pw, ph, err)
		}
		k++
	}
	files := content(t, out)
	for _, line := range strings.Split(strings.TrimSpace(files[sumsFile]), "\n") {
		hash, name, _ := strings.Cut(line, "  ")
		if sum := fmt.Sprintf("%x", sha256.Sum256([]byte(files[name]))); sum != hash {
			t.Errorf("%s: SHA-256 %s, %s says %s", name, sum, sumsFile, hash)
		}
	}
	// A shard without its index gives the same set.
	names := func(ds data.Dataset) (list []string) {
		for i := range ds.Len() {
			list = append(list, fmt.Sprint(ds.Name(i), ds.Label(i)))
		}
		return list
	}
	for name := range files {
		if strings.HasSuffix(name, ".idx") {
			if err := os.Remove(filepath.Join(out, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if plain, _ := open(t, out); !slices.Equal(names(plain), names(packed)) {
		t.Error("shards and their index differ")
	}
	if _, err := Run(context.Background(), train, val, out, options); err == nil ||
		!strings.Contains(err.Error(), "exists already") {
		t.Errorf("error %v of a folder that exists", err)
	}
}

func TestPackRecode(t *testing.T) {
	train, val := open(t, source(t))
	out := filepath.Join(t.TempDir(), "packed")
	report, err := Run(t.Context(), train, val, out, Options{Size: 32, Quality: 60, Recode: true})
	if err != nil {
		t.Fatal(err)
	}
	if s := report.Splits[0]; s.Kept() != 10 || s.Copied != 0 {
		t.Errorf("%d images, %d copied", s.Kept(), s.Copied)
	}
	again, _ := open(t, out)
	var s data.Scratch
	for i := range again.Len() {
		if b, _, err := data.Encoded(again, i, &s); err != nil || imaging.Extension(b) != ".jpg" {
			t.Errorf("%s: no JPEG (%v)", again.Name(i), err)
		}
	}
}

func TestPackRaw(t *testing.T) {
	in, out := source(t), filepath.Join(t.TempDir(), "out")
	train, val := open(t, in)
	if _, err := Run(context.Background(), train, val, out,
		Options{Size: 24, Raw: true, ShardBytes: 20000}); err != nil {
		t.Fatal(err)
	}
	packed, _ := open(t, out)
	var a, b data.Scratch
	var r imaging.Resizer
	var want imaging.Image
	k := 0
	for i := range train.Len() {
		m, err := train.Read(i, nil, &a)
		if err != nil {
			continue
		}
		if err := r.ResizeShorter(&want, m, min(24, m.Width, m.Height)); err != nil {
			t.Fatal(err)
		}
		box := image.Rect(3, 2, want.Width-1, want.Height-4)
		for _, region := range []data.Region{nil, func(int, int) image.Rectangle { return box }} {
			got, err := packed.Read(k, region, &b)
			if err != nil {
				t.Fatal(err)
			}
			crop := want
			if region != nil {
				if err := imaging.Crop(&crop, &want, box); err != nil {
					t.Fatal(err)
				}
				crop.Pix = bytes.Clone(crop.Pix)
			}
			if got.Bounds() != crop.Bounds() || !bytes.Equal(got.Pix, crop.Pix) {
				t.Errorf("%s: other pixels", packed.Name(k))
			}
		}
		k++
		want = imaging.Image{}
	}
	if k != packed.Len() {
		t.Errorf("%d images, want %d", packed.Len(), k)
	}
}

// The bytes depend neither on the number of workers nor on where a run was stopped.
func TestPackIsDeterministic(t *testing.T) {
	in, dir := source(t), t.TempDir()
	train, val := open(t, in)
	for _, raw := range []bool{false, true} {
		opt := options
		opt.Raw = raw
		whole := filepath.Join(dir, fmt.Sprint("whole", raw))
		if _, err := Run(context.Background(), train, val, whole, opt); err != nil {
			t.Fatal(err)
		}
		for stop := 0; stop <= 14; stop += 3 {
			out := filepath.Join(dir, fmt.Sprint("stopped", raw, stop))
			ctx, cancel := context.WithCancel(context.Background())
			seen := 0
			some := opt
			some.Workers = 1 + stop%3
			some.Progress = func(string, int, int) {
				if seen++; seen == stop {
					cancel()
				}
			}
			_, err := Run(ctx, train, val, out, some)
			if stop > 0 && !errors.Is(err, context.Canceled) && seen < 14 {
				t.Fatalf("stopped after %d images: error %v", stop, err)
			}
			if err != nil {
				notWhole(t, out)
				if _, err := Run(context.Background(), train, val, out, opt); err != nil {
					t.Fatal(err)
				}
			}
			cancel()
			sameFiles(t, out, whole)
		}
	}
}

// notWhole fails if something opens as a set.
func notWhole(t testing.TB, out string) {
	t.Helper()
	for _, place := range []string{out, out + unfinished} {
		if ds, _, err := data.Open(place, data.Options{}); err == nil {
			t.Errorf("%s opens, with %d images", place, ds.Len())
		}
		if ds, err := data.OpenEval(place, nil, ""); err == nil {
			t.Errorf("%s opens for evaluation, with %d images", place, ds.Len())
		}
	}
}

// fullDisk is a file on a disk with room for left bytes.
type fullDisk struct {
	*os.File
	left *int
}

func (f fullDisk) Write(b []byte) (int, error) {
	if *f.left -= len(b); *f.left < 0 {
		n, _ := f.File.Write(b[:max(0, len(b)+*f.left)])
		return n, &os.PathError{Op: "write", Path: f.Name(), Err: syscall.ENOSPC}
	}
	return f.File.Write(b)
}

func TestPackOnFullDisk(t *testing.T) {
	in, dir := source(t), t.TempDir()
	train, val := open(t, in)
	defer func() { create = func(path string) (file, error) { return os.Create(path) } }()
	for _, raw := range []bool{false, true} {
		opt := options
		opt.Raw = raw
		whole := filepath.Join(dir, fmt.Sprint("whole", raw))
		create = func(path string) (file, error) { return os.Create(path) }
		if _, err := Run(context.Background(), train, val, whole, opt); err != nil {
			t.Fatal(err)
		}
		out := filepath.Join(dir, fmt.Sprint("out", raw))
		for room := 500; ; room += 4999 {
			left := room
			create = func(path string) (file, error) {
				f, err := os.Create(path)
				return fullDisk{f, &left}, err
			}
			_, err := Run(context.Background(), train, val, out, opt)
			if err == nil {
				break
			}
			if !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("room for %d bytes: error %v", room, err)
			}
			notWhole(t, out)
			if left, _ := filepath.Glob(filepath.Join(out+unfinished, "*.tmp")); len(left) > 0 {
				t.Errorf("room for %d bytes: %q are left", room, left)
			}
		}
		sameFiles(t, out, whole)
	}
}

func TestPackErrors(t *testing.T) {
	in, dir := source(t), t.TempDir()
	train, val := open(t, in)
	out := filepath.Join(dir, "out")
	ctx, cancel := context.WithCancel(context.Background())
	some := options
	some.Progress = func(_ string, done, _ int) {
		if done == 9 {
			cancel()
		}
	}
	if _, err := Run(ctx, train, val, out, some); err == nil {
		t.Fatal("no error of a run that was stopped")
	}
	for name, c := range map[string]struct {
		train data.Dataset
		out   string
		opt   Options
	}{
		"size 3":        {train, out + "1", Options{Size: 3, Quality: 90}},
		"quality 0":     {train, out + "1", Options{Size: 30}},
		"other images":  {val, out, options},
		"stores pixels": {data.Glyphs(format.GlyphTest), out + "1", options},
	} {
		_, err := Run(context.Background(), c.train, nil, c.out, c.opt)
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v, want %q", err, name)
		}
	}
	image := train.Name(0)
	before, err := os.ReadFile(image)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		content []byte
		want    string
	}{{append(slices.Clone(before), 0), "other images"}, {before, ""}} {
		if err := os.WriteFile(image, c.content, 0o644); err != nil {
			t.Fatal(err)
		}
		again, _ := open(t, in)
		if _, err := Run(context.Background(), again, val, out, options); c.want == "" && err != nil ||
			c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("error %v of an edited image, want %q", err, c.want)
		}
	}
}

func TestKey(t *testing.T) {
	for name, want := range map[string]string{
		"a/b/c.d.JPEG": "00000007_c", "../..": "00000007_", `x\..\evil name.jpg`: "00000007_evil_name",
		"shard.tar/é": "00000007___", "n/" + strings.Repeat("x", 99): "00000007_" + strings.Repeat("x", 48),
	} {
		if got := key(7, name); got != want {
			t.Errorf("%q: key %q, want %q", name, got, want)
		}
	}
}
