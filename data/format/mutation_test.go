package format

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"onlinerna/data/internal/datatest"
)

// readers are the formats of files, each with a small file and the other files that its reader needs.
func readers(t testing.TB) map[string]struct {
	file  string
	whole []byte
	open  func(path string) (Set, error)
} {
	t.Helper()
	official := t.TempDir()
	officialArchives(t, official)
	read := func(path string) []byte {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	var shard []datatest.Member
	for i, m := range trainPictures(t) {
		key := strings.TrimSuffix(m.Name, ".JPEG")
		shard = append(shard, datatest.File(key+".jpg", m.Content), datatest.Text(key+".cls", string(rune('0'+i%3))),
			datatest.Text(key+".json", `{"label": 1}`))
	}
	labels := func(class int) int { return class + 1 }
	one := func(open func(paths, classes []string) (Set, error)) func(path string) (Set, error) {
		return func(path string) (Set, error) { return open([]string{path}, nil) }
	}
	type reader = struct {
		file  string
		whole []byte
		open  func(path string) (Set, error)
	}
	return map[string]reader{
		"shard": {"train-0.tar", datatest.Tar(t, shard...), one(openShards)},
		"train archive": {imageNetTrain, read(filepath.Join(official, imageNetTrain)), func(path string) (Set, error) {
			return openImageNetTrain(path, nil)
		}},
		"val archive": {imageNetVal, read(filepath.Join(official, imageNetVal)), func(path string) (Set, error) {
			return openImageNetVal(path, &listing{path: official}, nil)
		}},
		"devkit": {devkitArchive, read(filepath.Join(official, devkitArchive)), func(path string) (Set, error) {
			return openImageNetVal(filepath.Join(official, imageNetVal), &listing{path: filepath.Dir(path)}, nil)
		}},
		"records": {"train-00000-of-00001", slices.Concat(imageRecords(t, labels, true)...), one(openRecords)},
		"parquet": {"train.parquet", read(filepath.Join(parquetPlace("v2"), "train.parquet")), one(openParquet)},
		"parquet snappy": {"train.parquet",
			read(filepath.Join(parquetPlace("snappy"), "train-00000-of-00001-abc.parquet")), one(openParquet)},
		"parquet zstd": {"train.parquet", read(filepath.Join(parquetPlace("zstd"), "train.parquet")), one(openParquet)},
	}
}

// mutate changes some bytes, clears or copies a piece, or cuts the file.
func mutate(whole []byte, rng *rand.Rand) []byte {
	b := bytes.Clone(whole)
	piece := func() []byte {
		lo := rng.IntN(len(b))
		return b[lo:min(len(b), lo+1+rng.IntN(600))]
	}
	switch rng.IntN(8) {
	case 0:
		clear(piece())
	case 1:
		copy(piece(), piece())
	case 2:
		return b[:rng.IntN(len(b))]
	case 3:
		p := piece()
		for i := range p {
			p[i] = byte(rng.Uint32())
		}
	case 4: // near the end, where footers are
		b[len(b)-1-rng.IntN(min(len(b), 400))] = byte(rng.Uint32())
	case 5: // where the first headers are
		b[rng.IntN(min(len(b), 600))] = byte(rng.Uint32())
	default:
		for range 1 + rng.IntN(4) {
			b[rng.IntN(len(b))] ^= byte(1 << rng.IntN(8))
		}
	}
	return b
}

// A damaged file gives an error that names it, or images each of which can be read or is named by an error.
func TestDamagedFiles(t *testing.T) {
	count := 1000
	if testing.Short() {
		count = 100
	}
	for name, r := range readers(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(1, 2))
			path := filepath.Join(t.TempDir(), r.file)
			failed := 0
			for range count {
				if err := os.WriteFile(path, mutate(r.whole, rng), 0o644); err != nil {
					t.Fatal(err)
				}
				ds, err := r.open(path)
				if err == nil {
					readAll(t, ds)
				} else if failed++; !strings.Contains(err.Error(), filepath.Dir(path)) {
					t.Fatalf("error %q does not name the file", err)
				}
			}
			if failed == 0 || failed == count {
				t.Errorf("%d of %d files give an error", failed, count)
			}
		})
	}
}

// Images of every format within a shard that is whole.
func TestDamagedImages(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, name := range []string{"sampling-420.jpg", "sampling-422-progressive.jpg", "restart.jpg", "png-2-8.png",
		"webp-lossy-37x27.webp",
		"webp-lossless-20x16.webp", "bmp-p.bmp", "gif-p.gif", "tiff-rgb-lzw.tiff"} {
		whole, err := os.ReadFile(filepath.Join("..", "imaging", "testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		count := 1000
		if testing.Short() {
			count = 100
		}
		dir, bad := t.TempDir(), 0
		var s Buffer
		var members []datatest.Member
		for i := range count {
			key := string(rune('a'+i/676)) + string(rune('a'+i/26%26)) + string(rune('a'+i%26))
			members = append(members, datatest.File(key+filepath.Ext(name), mutate(whole, rng)),
				datatest.Text(key+".cls", "0"))
		}
		datatest.Write(t, dir, "train-0.tar", datatest.Tar(t, members...))
		ds, _ := openBoth(t, dir)
		for i := range ds.Len() {
			if _, err := decode(ds, i, &s); err != nil {
				if bad++; !strings.Contains(err.Error(), ds.Name(i)) {
					t.Fatalf("error %q does not name %s", err, ds.Name(i))
				}
			}
		}
		if bad == 0 || ds.Len() != count {
			t.Errorf("%s: %d of %d damaged images give an error", name, bad, ds.Len())
		}
	}
}

func fuzzReader(f *testing.F, name string) {
	r := readers(f)[name]
	f.Add(r.whole)
	path := filepath.Join(f.TempDir(), r.file)
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		if ds, err := r.open(path); err == nil {
			readAll(t, ds)
		}
	})
}

func FuzzImageNetTrain(f *testing.F) { fuzzReader(f, "train archive") }
func FuzzImageNetVal(f *testing.F)   { fuzzReader(f, "val archive") }
func FuzzDevkit(f *testing.F)        { fuzzReader(f, "devkit") }
func FuzzRecords(f *testing.F)       { fuzzReader(f, "records") }
func FuzzParquet(f *testing.F)       { fuzzReader(f, "parquet") }
func FuzzParquetSnappy(f *testing.F) { fuzzReader(f, "parquet snappy") }
func FuzzParquetZstd(f *testing.F)   { fuzzReader(f, "parquet zstd") }

func FuzzSolution(f *testing.F) {
	f.Add([]byte("ImageId,PredictionString\na,n1 1 2 3 4\n"))
	path := filepath.Join(f.TempDir(), KaggleSolution)
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		_, _ = readSolution(path)
	})
}

// False sizes, members without an end, data after the end.
func TestLyingTars(t *testing.T) {
	image := datatest.PNG(t, 4, 4, 0)
	whole := datatest.Tar(t, datatest.File("../../a.png", image), datatest.Text("../../a.cls", "0"),
		datatest.File("b.png", image), datatest.Text("b.cls", "1"))
	path := filepath.Join(t.TempDir(), "train-0.tar")
	open := func(b []byte) error {
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		ds, err := openShards([]string{path}, nil)
		if err == nil {
			readAll(t, ds)
		}
		return err
	}
	if err := open(whole); err != nil {
		t.Errorf("names with ..: %v", err)
	}
	// The size is twelve bytes of octal digits at 124; the checksum of the header, at 148, must match.
	sized := func(size string) []byte {
		b := bytes.Clone(whole)
		copy(b[124:136], size)
		copy(b[148:156], "        ")
		sum := 0
		for _, c := range b[:512] {
			sum += int(c)
		}
		copy(b[148:156], []byte{byte('0' + sum>>15&7), byte('0' + sum>>12&7), byte('0' + sum>>9&7),
			byte('0' + sum>>6&7), byte('0' + sum>>3&7), byte('0' + sum&7), 0, ' '})
		return b
	}
	datatest.WantError(t, open(sized("77777777777\x00")), "train-0.tar", "cut short at offset")
	datatest.WantError(t, open(sized("\x80\x00\x00\x00\x7f\xff\xff\xff\xff\xff\xff\xff")), "train-0.tar", "offset")
	datatest.WantError(t, open(append(bytes.Clone(whole), whole...)), "train-0.tar",
		"data follows the mark of the archive's end")
	holed := bytes.Clone(whole)
	clear(holed[1024:2048]) // the headers of the second member, as in a copy that left a hole
	datatest.WantError(t, open(holed), "train-0.tar")
	if err := open(append(bytes.Clone(whole), make([]byte, 10240)...)); err != nil {
		t.Errorf("zeros behind the end: %v", err)
	}
}
