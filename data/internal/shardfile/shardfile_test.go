package shardfile

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestRoundTrip(t *testing.T) {
	shard := filepath.Join(t.TempDir(), "train-0.tar")
	if _, ok, err := Read(shard, 100); ok || err != nil {
		t.Errorf("without an index: %v, %v", ok, err)
	}
	entries := []Entry{{10, 20, "3", "a b"}, {40, 60, "0", "c/d"}}
	if err := os.WriteFile(shard+Extension, Format(100, entries), 0o644); err != nil {
		t.Fatal(err)
	}
	got, ok, err := Read(shard, 100)
	if !ok || err != nil || !slices.Equal(got, entries) {
		t.Errorf("%v, %v, %v", got, ok, err)
	}
	if _, ok, err := Read(shard, 99); ok || err != nil {
		t.Errorf("of another shard: %v, %v", ok, err)
	}
	if err := os.WriteFile(shard, make([]byte, 100), 0o644); err != nil {
		t.Fatal(err)
	}
	for later, want := range map[time.Duration]bool{-time.Second: true, 0: true, time.Second: false} {
		info, err := os.Stat(shard + Extension)
		if err == nil {
			err = os.Chtimes(shard, time.Time{}, info.ModTime().Add(later))
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, ok, err := Read(shard, 100); ok != want || err != nil {
			t.Errorf("a shard %v younger than its index: %v, %v", later, ok, err)
		}
	}
}

func TestDamaged(t *testing.T) {
	whole := string(Format(100, []Entry{{10, 20, "3", "a"}, {40, 60, "0", "b"}}))
	for content, want := range map[string]string{
		"":                                    "not the index",
		"other 1 100 2\n":                     "not the index",
		title + "\n":                          "not the index",
		title + " x 2\n":                      "line 1",
		whole[:len(whole)-10]:                 "cut short",
		strings.Replace(whole, "60", "61", 1): "line 3",
		strings.Replace(whole, "40", "-1", 1): "line 3",
		strings.Replace(whole, "10 20 3 a", "1", 1): "line 2",
	} {
		if _, ok, err := parse([]byte(content), 100); ok || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, error %v, want %q", content, ok, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(Format(100, []Entry{{10, 20, "3", "a"}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		entries, _, _ := parse(b, 100)
		for _, e := range entries {
			if e.Offset < 0 || e.Size < 0 || e.Offset+e.Size > 100 {
				t.Errorf("%+v of a shard of 100 bytes", e)
			}
		}
	})
}
