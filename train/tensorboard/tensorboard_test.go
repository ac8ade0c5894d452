package tensorboard

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"image"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"onlinerna/train/hook"
	"onlinerna/train/network"
	"onlinerna/train/option"
)

// TestMasked checks the checksum of the length 24 that starts every file of TensorFlow: the record of brain.Event:2.
func TestMasked(t *testing.T) {
	length := binary.LittleEndian.AppendUint64(nil, 24)
	if got := hex.EncodeToString(binary.LittleEndian.AppendUint32(nil, masked(length))); got != "a37f4b22" {
		t.Errorf("%s", got)
	}
}

// records reads a file's payloads and checks their checksums.
func records(t *testing.T, path string) (list [][]byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for len(b) > 0 {
		n := int(binary.LittleEndian.Uint64(b))
		payload := b[12 : 12+n]
		if binary.LittleEndian.Uint32(b[8:]) != masked(b[:8]) || binary.LittleEndian.Uint32(b[12+n:]) != masked(payload) {
			t.Fatal("a checksum is wrong")
		}
		list = append(list, payload)
		b = b[16+n:]
	}
	return list
}

func TestHook(t *testing.T) {
	dir := t.TempDir()
	clock := time.Unix(1700000000, 0)
	config := Config{Options: []option.Setting{{Name: "lr", Text: "0.1"}, {Name: "nesterov", Text: "true"},
		{Name: "model", Text: "a|<b>"}, {Name: "averages", List: []string{"5", "10"}}},
		Sheet: func(context.Context) (image.Image, error) { return image.NewRGBA(image.Rect(0, 0, 3, 2)), nil }}
	h := New(dir, config)
	h.now = func() time.Time { clock = clock.Add(time.Second); return clock }
	c := "AdamW"
	for i := 1; i <= 2; i++ {
		if err := h.AfterStep(t.Context(), hook.New(hook.State{Optimizer: c, Steps: i,
			Step: &hook.StepRecord{Step: i, Loss: 0.5, Rate: math.NaN()}}, nil)); err != nil {
			t.Fatal(err)
		}
	}
	score := network.Score{Loss: 2, Top1: 75, Images: 8}
	r := &hook.EpochRecord{Step: 2, Train: score, SGD: &score, RNA: &hook.RNARecord{C: []float64{.25, .75}}, Held: []hook.ScoreRecord{{Kind: network.Average,
		Snapshots: 5, Score: score}}}
	if err := h.AfterEpoch(t.Context(), hook.New(hook.State{Optimizer: c, Steps: 2, Record: r}, nil)); err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "events.out.tfevents.*"))
	if len(files) != 1 {
		t.Fatal(files)
	}
	list := records(t, files[0])
	if len(list) != 6 || string(list[0][11:]) != "brain.Event:2" {
		t.Fatalf("%d records, %q", len(list), list[0])
	}
	// A step: seconds, step, and the summary's loss and top-1; the rate is NaN and left out.
	want := "09" + hex.EncodeToString(binary.LittleEndian.AppendUint64(nil, math.Float64bits(1700000003))) + "1001" +
		"2a24" +
		"0a10" + "0a09" + hex.EncodeToString([]byte("step/loss")) + "15" + "0000003f" +
		"0a10" + "0a09" + hex.EncodeToString([]byte("step/top1")) + "15" + "00000000"
	if got := hex.EncodeToString(list[2]); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for _, tag := range []string{"training loss/AdamW", "validation error/AdamW", "held-out loss/average of 5",
		"RNA coefficient/01 before the newest", "session_end_info"} {
		if !slices.ContainsFunc(list[4:], func(b []byte) bool { return bytes.Contains(b, []byte(tag)) }) {
			t.Errorf("no %s", tag)
		}
	}
	for _, part := range []string{"_hparams_/session_start_info", "options/text_summary", "| model | a&#124;&lt;b> |",
		"augmented images", "\x89PNG", "\x0a\x02lr\x12\x09\x11\x9a\x99\x99\x99\x99\x99\xb9\x3f",
		"\x0a\x08nesterov\x12\x02\x20\x01", "\x0a\x08averages\x12\x06\x1a\x045,10"} {
		if !bytes.Contains(list[1], []byte(part)) {
			t.Errorf("no %q in the introduction", part)
		}
	}
	// A resumed run.
	again := New(dir, config)
	if err := again.AfterStep(t.Context(), hook.New(hook.State{Optimizer: c, Steps: 2,
		Step: &hook.StepRecord{Step: 2, Loss: 1}}, nil)); err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	if files, _ = filepath.Glob(filepath.Join(dir, "events.out.tfevents.*")); len(files) != 2 {
		t.Fatal(files)
	}
	list = records(t, files[1])
	if len(list) != 3 || hex.EncodeToString(list[1][9:]) != "1002"+"3a02"+"0801" {
		t.Errorf("%d records, the second %x", len(list), list[1])
	}
}

// TestHistogram: counts fall into equal intervals up to their limits, which TensorBoard's reader confirms
// (scripts/tensorboard_check.py).
func TestHistogram(t *testing.T) {
	b := histogram("w", []float32{-1, -1, 0, 1, float32(math.NaN()), float32(math.Inf(1))})
	numbers := func(b []byte) (list []float64) {
		for ; len(b) >= 8; b = b[8:] {
			list = append(list, math.Float64frombits(binary.LittleEndian.Uint64(b)))
		}
		return list
	}
	at := bytes.Index(b, []byte{0x32}) // the limits, which follow five numbers
	head := numbers(nil)
	for i := range 5 {
		k := at - 45 + 9*i
		head = append(head, numbers(b[k+1:k+9])...)
	}
	if !slices.Equal(head, []float64{-1, 1, 4, -1, 3}) {
		t.Errorf("%v", head)
	}
	size := 8 * (buckets + 1)
	limits, counts := numbers(b[at+3:at+3+size]), numbers(b[at+3+size+3:])
	if len(limits) != buckets+1 || len(counts) != buckets+1 || limits[0] != -1 || limits[buckets] != 1 {
		t.Fatalf("%v, %v", limits, counts)
	}
	want := map[int]float64{1: 2, buckets / 2: 1, buckets: 1}
	for k, n := range counts {
		if n != want[k] {
			t.Errorf("%g numbers up to %g", n, limits[k])
		}
	}
	if histogram("w", []float32{float32(math.NaN())}) != nil || histogram("w", []float32{2, 2}) == nil {
		t.Error("of no number, and of equal ones")
	}
}
