package launches

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"onlinerna/cuda/check/ptx"
)

const at = 0x7f0000002000

// record is a launch of kernel add with two pointers into one block, to float and 16-bit numbers, and a number.
func record(chunks ...[]byte) string {
	pointer := func(off uint64) string { return hex.EncodeToString(binary.LittleEndian.AppendUint64(nil, at+off)) }
	return fmt.Sprintf("source 0a\nkernel add\ntypes fh-|\ngrid 2 1 1\nblock 32 1 1\nshared 0\nparameter "+
		"%s\nparameter %s\nparameter 07000000\nmemory %x 64 1 1\n\n%s",
		pointer(16), pointer(48), at, bytes.Join(chunks, nil))
}

func chunk(from int, data ...byte) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(from))
	return append(binary.LittleEndian.AppendUint64(b, uint64(len(data))), data...)
}

func write(t *testing.T, text string) string {
	t.Helper()
	folder := t.TempDir()
	for name, content := range map[string]string{"0a-add-1.launch": text, "0a.cu": "-DSTORE=1 -DX\n#line 1\nsource"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func TestRead(t *testing.T) {
	all, sources, err := Read(write(t, record(chunk(0, 1, 2, 3), chunk(1, 9))))
	if err != nil || len(all) != 1 {
		t.Fatalf("%d launches, %v", len(all), err)
	}
	l, s := all[0], sources["0a"]
	if l.Kernel != "add" || l.Types != "fh-" || l.Blocks != [3]int{2, 1, 1} || l.Threads != [3]int{32, 1, 1} ||
		len(l.Parameters) != 3 || l.Parameters[2][0] != 7 {
		t.Errorf("%+v", l)
	}
	if strings.Join(s.Options, ";") != "-DSTORE=1;-DX" || s.Text != "#line 1\nsource" {
		t.Errorf("%+v", s)
	}
	before, after := l.Before[0], l.After[0]
	if before.At != at || len(before.Data) != 64 || string(before.Data[:4]) != "\x01\x02\x03\xff" ||
		string(after.Data[:4]) != "\x01\x09\x03\xff" {
		t.Errorf("%x, %x", before, after)
	}
	whole := record(chunk(0, 1, 2, 3), chunk(1, 9))
	for _, bad := range []string{
		"", strings.Replace(whole, "\n\n", "\n", 1), whole[:len(whole)-1],
		strings.Replace(whole, "shared 0", "shared 16", 1), strings.Replace(whole, "fh-", "fh", 1),
		strings.Replace(whole, "grid 2", "grid x", 1), strings.Replace(whole, "kernel", "colonel", 1),
		record(chunk(62, 1, 2, 3), chunk(1, 9)), record(),
	} {
		if _, _, err := Read(write(t, bad)); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}

// Numbers have the type of the nearest parameter before them.
func TestCompare(t *testing.T) {
	all, _, err := Read(write(t, record(chunk(0, make([]byte, 64)...), chunk(16, make([]byte, 48)...))))
	if err != nil {
		t.Fatal(err)
	}
	l := all[0]
	float := func(b []byte, off int, x float32) { binary.LittleEndian.PutUint32(b[off:], math.Float32bits(x)) }
	small := func(b []byte, off int, x float32) {
		binary.LittleEndian.PutUint16(b[off:], uint16(math.Float32bits(x)>>16))
	}
	want := l.After[0].Data
	for i := 16; i < 48; i += 4 {
		float(want, i, float32(i))
	}
	for i := 48; i < 64; i += 2 {
		small(want, i, float32(i))
	}
	for _, x := range []struct {
		name   string
		change func(b []byte)
		bound  Bound
		ok     bool
	}{
		{"the same", func([]byte) {}, Bound{}, true},
		{"another bit", func(b []byte) { b[20]++ }, Bound{}, false},
		{"within a part", func(b []byte) { float(b, 20, 20.0001) }, Bound{Relative: 1e-5}, true},
		{"beyond a part", func(b []byte) { float(b, 20, 20.001) }, Bound{Relative: 1e-5}, false},
		{"within a part of the largest", func(b []byte) { float(b, 20, 20.001) }, Bound{Relative: 1e-5, Scaled: 1e-4},
			true},
		{"before all parameters", func(b []byte) { b[8]++ }, Bound{Relative: 1, Scaled: 1, Ulps: 9}, false},
		{"one unit of bfloat16", func(b []byte) { b[48]++ }, Bound{Ulps: 1}, true},
		{"two units of bfloat16", func(b []byte) { b[48] += 2 }, Bound{Ulps: 1}, false},
		{"NaN", func(b []byte) { float(b, 20, float32(math.NaN())) }, Bound{Relative: 1, Scaled: 1}, false},
		{"infinity", func(b []byte) { float(b, 20, float32(math.Inf(1))) }, Bound{Relative: 1, Scaled: 1}, false},
		{"what was not to be written", func(b []byte) { float(b, 16, -1) }, Bound{Relative: 1e-6, Scaled: 1e-6}, false},
	} {
		got := bytes.Clone(want)
		x.change(got)
		if r, err := l.Compare([]ptx.Block{{At: at, Data: got}}, true, x.bound); (err == nil) != x.ok || x.ok &&
			r.Words != 16 {
			t.Errorf("%s: %+v, %v", x.name, r, err)
		}
	}
	// All NaNs are equal.
	float(want, 20, float32(math.NaN()))
	got := bytes.Clone(want)
	got[20] ^= 3
	if _, err := l.Compare([]ptx.Block{{At: at, Data: got}}, true, Bound{}); err != nil {
		t.Error(err)
	}
	if Same(l.After, []ptx.Block{{At: at, Data: got}}) || !Same(l.After, l.After) {
		t.Error("the same memory is told from other memory")
	}
}
