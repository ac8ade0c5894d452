package tensorboard

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"onlinerna/train/hook"
	"onlinerna/train/network"
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
	h := New(dir)
	h.now = func() time.Time { clock = clock.Add(time.Second); return clock }
	c := "AdamW"
	for i := 1; i <= 2; i++ {
		if err := h.AfterStep(t.Context(), hook.New(hook.State{Optimizer: c, Steps: i,
			Step: &hook.StepRecord{Step: i, Loss: 0.5, Rate: math.NaN()}}, nil)); err != nil {
			t.Fatal(err)
		}
	}
	score := network.Score{Loss: 2, Top1: 75, Images: 8}
	r := &hook.EpochRecord{Step: 2, Train: score, SGD: &score, Held: []hook.ScoreRecord{{Kind: network.Average,
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
	if len(list) != 4 || string(list[0][11:]) != "brain.Event:2" {
		t.Fatalf("%d records, %q", len(list), list[0])
	}
	// A step: seconds, step, and the summary's loss and top-1; the rate is NaN and left out.
	want := "09" + hex.EncodeToString(binary.LittleEndian.AppendUint64(nil, math.Float64bits(1700000002))) + "1001" +
		"2a24" +
		"0a10" + "0a09" + hex.EncodeToString([]byte("step/loss")) + "15" + "0000003f" +
		"0a10" + "0a09" + hex.EncodeToString([]byte("step/top1")) + "15" + "00000000"
	if got := hex.EncodeToString(list[1]); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for _, tag := range []string{"training loss/AdamW", "validation error/AdamW", "held-out loss/average of 5"} {
		if !slices.ContainsFunc(list[3:], func(b []byte) bool { return bytes.Contains(b, []byte(tag)) }) {
			t.Errorf("no %s", tag)
		}
	}
	// A resumed run.
	again := New(dir)
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
