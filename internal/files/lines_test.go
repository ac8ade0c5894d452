package files

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestLines(t *testing.T) {
	read := func(text string) (list []string) {
		err := Lines(strings.NewReader(text), func(line []byte) error {
			list = append(list, string(line))
			return nil
		})
		if err != nil {
			t.Errorf("%d bytes: %v", len(text), err)
		}
		return list
	}
	buffer := strings.Repeat("x", 64<<10)
	long := strings.Repeat("y", MaxLine-1) + "\n"
	for _, want := range [][]string{
		nil, {"\n"}, {"a\n", "\n", "b"}, {buffer + "\n", "a\n"}, {buffer[1:] + "\n", buffer}, {buffer + buffer},
		{"a\n", long, long, "b"},
	} {
		if got := read(strings.Join(want, "")); !slices.Equal(got, want) {
			t.Errorf("%d lines, want %d", len(got), len(want))
		}
	}
	none := func([]byte) error { return nil }
	err := Lines(io.MultiReader(strings.NewReader("a\nb\n"), strings.NewReader(long[:len(long)-1]+"yy")), none)
	if err == nil || err.Error() != "line 3 has more than 67108864 bytes" {
		t.Error(err)
	}
	stop := errors.New("stop")
	if err := Lines(strings.NewReader("a\n"), func([]byte) error { return stop }); err != stop {
		t.Error(err)
	}
}

// A file that is a hole takes no memory.
func TestHole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hole")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(1 << 40); err != nil {
		t.Skip(err)
	}
	if _, err := Read(path); err == nil || !strings.Contains(err.Error(), "more than 67108864 bytes") {
		t.Error(err)
	}
	if err := Lines(f, func([]byte) error { return nil }); err == nil || !strings.Contains(err.Error(), "line 1 has") {
		t.Error(err)
	}
}
