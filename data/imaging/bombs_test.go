package imaging

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"image"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// tiledTIFF is a gray image of 20×20 pixels in one tile of the given side, compressed zeros.
func tiledTIFF(t testing.TB, side int) []byte {
	t.Helper()
	b := binary.LittleEndian.AppendUint32([]byte("II*\x00"), 8)
	entries := [][3]uint32{{256, 4, 20}, {257, 4, 20}, {258, 3, 8}, {259, 3, 8}, {262, 3, 1}, {322, 4, uint32(side)},
		{323, 4, uint32(side)}, {324, 4, 0}, {325, 4, 0}}
	var data bytes.Buffer
	w, err := zlib.NewWriterLevel(&data, zlib.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	row := make([]byte, side)
	for range side {
		if _, err := w.Write(row); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	b = binary.LittleEndian.AppendUint16(b, uint16(len(entries)))
	entries[7][2] = uint32(8 + 2 + 12*len(entries) + 4)
	entries[8][2] = uint32(data.Len())
	for _, e := range entries {
		b = binary.LittleEndian.AppendUint16(b, uint16(e[0]))
		b = binary.LittleEndian.AppendUint16(b, uint16(e[1]))
		b = binary.LittleEndian.AppendUint32(b, 1)
		b = binary.LittleEndian.AppendUint32(b, e[2])
	}
	return append(binary.LittleEndian.AppendUint32(b, 0), data.Bytes()...)
}

// canvasWebP is a WebP whose canvas has one pixel and whose frame has 16000×11000.
func canvasWebP(t *testing.T) []byte {
	t.Helper()
	whole, err := os.ReadFile(filepath.Join("testdata", "webp-lossy-37x27.webp"))
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(whole, []byte("VP8 "))
	frame := bytes.Clone(whole[at:])
	binary.LittleEndian.PutUint16(frame[8+6:], 16000)
	binary.LittleEndian.PutUint16(frame[8+8:], 11000)
	b := append([]byte("RIFF\x00\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00"), make([]byte, 10)...)
	b = append(b, frame...)
	binary.LittleEndian.PutUint32(b[4:], uint32(len(b)-8))
	return b
}

// Decoding a small file takes little memory, whatever size it declares.
func TestBombs(t *testing.T) {
	if _, err := Decode(tiledTIFF(t, 64), 1); err != nil {
		t.Fatalf("a tile larger than the image: %v", err)
	}
	for name, b := range map[string][]byte{"tiff": tiledTIFF(t, 24000), "webp": canvasWebP(t)} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Decode(b, 3)
		runtime.ReadMemStats(&after)
		if err == nil || after.TotalAlloc-before.TotalAlloc > 4<<20 {
			t.Errorf("%s: %d bytes took %d MB, error %v", name, len(b), (after.TotalAlloc-before.TotalAlloc)>>20, err)
		}
	}
}

// A tile counts as memory, as far as the decoder takes it.
func TestTileMemory(t *testing.T) {
	n, err := Memory(tiledTIFF(t, 1000), 3, image.Rect(0, 0, 20, 20))
	if want := int64(8*1000*1000 + 8*20*20 + 3*20*20); n != want || err != nil {
		t.Errorf("%d bytes, want %d (%v)", n, want, err)
	}
	// Entries with two numbers hold the offset of the first.
	const width = 8 + 2 + 5*12
	far := farTIFF(t, 1000)
	if again, err := Memory(far, 3, image.Rect(0, 0, 20, 20)); again != n || err != nil {
		t.Errorf("%d bytes by offsets, want %d (%v)", again, n, err)
	}
	if m, err := Decode(far, 1); err != nil || m.Width != 20 {
		t.Errorf("a TIFF with sides by offsets: %v", err)
	}
	for _, offset := range []uint32{uint32(len(far)) - 3, math.MaxUint32} {
		binary.LittleEndian.PutUint32(far[width+8:], offset)
		if n, err := Memory(far, 3, image.Rect(0, 0, 20, 20)); err == nil {
			t.Errorf("sides at %d, behind the file: %d bytes", offset, n)
		}
	}
}

// farTIFF is tiledTIFF with the sides of tiles behind offsets.
func farTIFF(t testing.TB, side int) []byte {
	b := tiledTIFF(t, side)
	for _, at := range []int{8 + 2 + 5*12, 8 + 2 + 6*12} {
		binary.LittleEndian.PutUint32(b[at+4:], 2)
		binary.LittleEndian.PutUint32(b[at+8:], uint32(len(b)))
		b = binary.LittleEndian.AppendUint32(b, uint32(side))
		b = binary.LittleEndian.AppendUint32(b, 0)
	}
	return b
}

// A scan of a progressive JPEG that is repeated costs a few bytes and a pass over the image.
func TestManyScans(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("testdata", "gray-progressive.jpg"))
	if err != nil {
		t.Fatal(err)
	}
	from := bytes.Index(b, []byte{0xff, 0xda}) // of the first bits of the mean values, which may be read again
	end := from + 2 + bytes.Index(b[from+2:], []byte{0xff, 0xc4})
	many := func(n int) []byte {
		return append(append(bytes.Clone(b[:end]), bytes.Repeat(b[from:end], n)...), b[end:]...)
	}
	if _, err := Decode(many(20), 1); err != nil {
		t.Errorf("20 more scans: %v", err)
	}
	if _, err := Decode(many(1500), 1); err == nil || !strings.Contains(err.Error(), "100 scans") {
		t.Errorf("1500 scans: %v", err)
	}
}
