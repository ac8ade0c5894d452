package data

import (
	"context"
	"encoding/binary"
	"hash/crc32"
	"image"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"onlinerna/data/augment"
	"onlinerna/data/imaging"
	"onlinerna/data/internal/datatest"
)

// declaring is b, a baseline JPEG or a PNG, whose header declares a size.
func declaring(t testing.TB, b []byte, width, height int) []byte {
	t.Helper()
	b = slices.Clone(b)
	if string(b[1:4]) == "PNG" {
		binary.BigEndian.PutUint32(b[16:], uint32(width))
		binary.BigEndian.PutUint32(b[20:], uint32(height))
		binary.BigEndian.PutUint32(b[29:], crc32.ChecksumIEEE(b[12:29]))
	} else {
		at := strings.Index(string(b), "\xff\xc0\x00")
		if at < 0 {
			t.Fatal("no frame header")
		}
		binary.BigEndian.PutUint16(b[at+5:], uint16(height))
		binary.BigEndian.PutUint16(b[at+7:], uint16(width))
	}
	if w, h, err := imaging.Dimensions(b); w != width || h != height || err != nil {
		t.Fatalf("%d×%d, %v", w, h, err)
	}
	return b
}

// TestBudgetRefuses: an image that declares more than the whole budget is an error that names it, before memory of its
// size is allocated.
func TestBudgetRefuses(t *testing.T) {
	dir := t.TempDir()
	for name, b := range map[string][]byte{
		"a/0.jpg": datatest.JPEG(t, 20, 20, 1), "b/1.jpg": datatest.JPEG(t, 20, 20, 2),
		"a/bomb.jpg": declaring(t, datatest.JPEG(t, 20, 20, 3), 13000, 13000),
		"b/bomb.png": declaring(t, datatest.PNG(t, 20, 20, 4), 13000, 13000),
	} {
		datatest.Write(t, dir, name, b)
	}
	ds, err := OpenEval(dir, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	l, err := NewLoader(ds, augment.EvalSmall(8), LoaderOptions{Batch: 4, Workers: 2, MaxBad: AllBad,
		Budget: NewBudget(100<<20, 1),
		Log:    func(_ string, args ...any) { said = append(said, args[len(args)-1].(error).Error()) }})
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for b, err := range l.Epoch(context.Background(), 1, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if b.N != 2 || b.Bad != 2 {
			t.Errorf("%d images, %d unreadable, want 2 and 2", b.N, b.Bad)
		}
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 20<<20 {
		t.Errorf("%d bytes were allocated", got)
	}
	slices.Sort(said)
	for i, name := range []string{"bomb.jpg", "bomb.png"} {
		if len(said) != 2 || !strings.Contains(said[i], filepath.Join(string("ab"[i]), name)) ||
			!strings.Contains(said[i], "--decode-memory") {
			t.Errorf("%q", said)
		}
	}
}

// TestProfileOfLargeImages profiles a set whose images all declare sizes beyond any budget: they are not small, and
// finding that out allocates no memory of their size.
func TestProfileOfLargeImages(t *testing.T) {
	dir := t.TempDir()
	for i := range 4 {
		datatest.Write(t, dir, filepath.Join(string("ab"[i%2]), string(rune('a'+i))+".jpg"),
			declaring(t, datatest.JPEG(t, 20, 20, i), 13000, 13000))
	}
	ds, err := OpenEval(dir, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p, err := ProfileOf(ds)
	runtime.ReadMemStats(&after)
	if err != nil || p.Name != "imagenet" {
		t.Errorf("profile %q, %v", p.Name, err)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
		t.Errorf("%d bytes were allocated", got)
	}
}

// TestBudgetWaits: if the budget has room for one image, workers take turns, and in the end the whole budget is free.
func TestBudgetWaits(t *testing.T) {
	dir := t.TempDir()
	for i := range 12 {
		datatest.Write(t, dir, filepath.Join(string("ab"[i%2]), string(rune('a'+i))+".png"),
			datatest.PNG(t, 200, 200, i))
	}
	ds, err := OpenEval(dir, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	const each = 7 * 200 * 200 // 4 bytes a pixel in the decoder, 3 in the image
	budget := NewBudget(each*3/2, 1)
	var at, most atomic.Int32
	l, err := NewLoader(watched{ds, &at, &most}, augment.EvalSmall(8),
		LoaderOptions{Batch: 6, Workers: 4, Budget: budget})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range l.Epoch(context.Background(), 1, 0) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if most.Load() != 1 {
		t.Errorf("%d images were decoded at a time, want 1", most.Load())
	}
	if !budget.free.TryAcquire(budget.bytes - budget.bytes/4) {
		t.Error("a share was not given back")
	}
}

// watched counts the images that hold memory at the same time.
type watched struct {
	Dataset
	at, most *atomic.Int32
}

func (w watched) Read(i int, region Region, s *Scratch) (*imaging.Image, error) {
	m, err := w.Dataset.Read(i, region, s)
	if err == nil {
		n := w.at.Add(1)
		for {
			if old := w.most.Load(); n <= old || w.most.CompareAndSwap(old, n) {
				break
			}
		}
		time.Sleep(time.Millisecond)
		w.at.Add(-1)
	}
	return m, err
}

// TestMemory compares the estimated memory of images with the allocations of decoding them.
func TestMemory(t *testing.T) {
	for name, b := range map[string][]byte{"jpeg": datatest.JPEG(t, 900, 700, 1), "png": datatest.PNG(t, 900, 700, 1)} {
		want, err := imaging.Memory(b, 3, image.Rect(0, 0, 900, 700))
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := imaging.Decode(b, 3); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		if got := int64(after.TotalAlloc - before.TotalAlloc); got > want+want/4+1<<20 || got < want/2 {
			t.Errorf("%s: %d bytes were allocated, %d said", name, got, want)
		}
	}
}
