package hdf5

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const testdata = "../../train/statedict/testdata"

func load(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(testdata, name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func read(b []byte) ([]Array, error) { return Read(bytes.NewReader(b), int64(len(b))) }

// TestRead finds the arrays that h5py wrote, in both forms of groups.
func TestRead(t *testing.T) {
	want := []string{"a.bias opaque2 [7] map[dtype:bfloat16]", "a.weight float4 [6 5] map[]",
		"b.weight float8 [5 3 4] map[]", "c.scale float4 [] map[]", "d.table float2 [10 4] map[]", "steps int8 [] map[]"}
	for _, name := range []string{"plain.h5", "latest.h5"} {
		list, err := read(load(t, name))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, a := range list {
			got = append(got, fmt.Sprintf("%s %s%d %v %v", a.Path, a.Kind, a.Size, a.Shape, a.Text))
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestCircle refuses a group that holds itself.
func TestCircle(t *testing.T) {
	b := load(t, "keras/net.weights.h5")
	root := binary.LittleEndian.Uint64(b[64:])
	at := bytes.Index(b, []byte("SNOD")) + 16 // the address of the first entry
	binary.LittleEndian.PutUint64(b[at:], root)
	if _, err := read(b); err == nil || !strings.Contains(err.Error(), "has two paths") {
		t.Error(err)
	}
}

// TestCut finds files that were cut short at each length.
func TestCut(t *testing.T) {
	for _, name := range []string{"plain.h5", "latest.h5"} {
		b := load(t, name)
		for n := range len(b) {
			if _, err := read(b[:n]); err == nil {
				t.Fatalf("%s: %d of %d bytes, and read", name, n, len(b))
			}
		}
	}
}

// TestTypes reads and refuses types by their messages.
func TestTypes(t *testing.T) {
	float := func(size, exponent, mantissa byte, bias uint32, bits byte) []byte {
		b := []byte{0x11, bits, 8*size - 1, 0, size, 0, 0, 0, 0, 0, 8 * size, 0, mantissa, exponent, 0, mantissa}
		return binary.LittleEndian.AppendUint32(b, bias)
	}
	integer := func(size, bits byte) []byte { return []byte{0x10, bits, 0, 0, size, 0, 0, 0, 0, 0, 8 * size, 0} }
	names := func(s string) []byte {
		return append([]byte{0x38, 2, 0, 0, 1, 0, 0, 0}, append(integer(1, 8), s+"\x00\x01"...)...)
	}
	for _, c := range []struct {
		b    []byte
		want string
	}{
		{float(4, 8, 23, 127, 0x20), "float4"},
		{float(8, 11, 52, 1023, 0x20), "float8"},
		{float(2, 5, 10, 15, 0x20), "float2"},
		{float(2, 8, 7, 127, 0x20), "bfloat162"},
		{float(4, 8, 23, 127, 0x21), "floating-point numbers: little-endian"},
		{float(4, 8, 23, 126, 0x20), "floating-point numbers: little-endian"},
		{integer(4, 8), "int4"},
		{integer(4, 0), "uint4"},
		{integer(4, 9), "elements of 4 bytes, integers"},
		{integer(3, 0), "elements of 3 bytes, integers"},
		{names("FALSE\x00TRUE\x00"), "bool1"},
		{names("RED\x00BLUE\x00"), "enumerations"},
		{[]byte{0x19, 1, 0, 0, 8, 0, 0, 0}, "lists"},
		{[]byte{0x10, 0}, "damaged"},
		{nil, "in another header"},
	} {
		kind, size, err := typeOf(c.b)
		got := fmt.Sprint(kind, size, err)
		if err == nil && fmt.Sprint(kind, size) != c.want || !strings.Contains(got, c.want) {
			t.Errorf("% x: %s, want %s", c.b, got, c.want)
		}
	}
}

// FuzzRead reads any bytes: arrays lie within them, or an error says why not.
func FuzzRead(f *testing.F) {
	for _, name := range []string{"plain.h5", "latest.h5", "keras/net_00002.weights.h5"} {
		b, err := os.ReadFile(filepath.Join(testdata, name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := read(b)
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%q", err)
		}
		for _, a := range list {
			n := int64(a.Size)
			for _, d := range a.Shape {
				n *= int64(d)
			}
			if n < 0 || a.Off < 0 || a.Off+n > int64(len(b)) {
				t.Errorf("%+v in %d bytes", a, len(b))
			}
		}
	})
}
