package torchfile

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"onlinerna/train/safetensors"
)

// TestGolden reads the state dict of testdata/gen.py, alone and as a prefixed part of other data.
func TestGolden(t *testing.T) {
	for _, name := range []string{"plain.pt", "wrapped.pth", "legacy.pt"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join("testdata", name)
			f, err := Read(path, "")
			if err != nil {
				t.Fatal(err)
			}
			tensors := f.Tensors
			file, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			count := func(lo, hi int) (v []float64) {
				for i := lo; i < hi; i++ {
					v = append(v, float64(i))
				}
				return v
			}
			var transposed []float64
			for i := range 6 {
				for j := range 4 {
					transposed = append(transposed, float64(6*j+i))
				}
			}
			want := []struct {
				name       string
				dtype      safetensors.DType
				values     []float64
				contiguous bool
			}{
				{"conv.weight", safetensors.F32, count(0, 24), false},
				{"fc.weight", safetensors.F32, transposed, false},
				{"fc.bias", safetensors.F32, count(5, 9), true},
				{"half", safetensors.F16, []float64{1.5, -2}, true},
				{"brain", safetensors.BF16, []float64{1.5, -2}, true},
				{"double", safetensors.F64, []float64{0.1}, true},
				{"bn.num_batches_tracked", safetensors.I64, nil, true},
				{"mask", "BOOL", nil, true},
				{"none", safetensors.F32, nil, true},
			}
			if len(tensors) != len(want) {
				t.Fatalf("%d tensors, want %d", len(tensors), len(want))
			}
			for i, w := range want {
				x := tensors[i]
				if strings.TrimPrefix(x.Name, "module.") != w.name || x.DType != w.dtype || x.Contiguous() != w.contiguous {
					t.Errorf("tensor %d is %+v, want %+v", i, x, w)
				}
				if w.values == nil {
					continue
				}
				for k, v := range elements(t, file, x) {
					if v != w.values[k] {
						t.Errorf("%s: element %d is %v, want %v", x.Name, k, v, w.values[k])
					}
				}
			}
			if n := binary.LittleEndian.Uint64(file[tensors[6].Offset:]); n != 7 {
				t.Errorf("counter is %d, want 7", n)
			}
		})
	}
}

// elements reads a floating-point tensor in its order.
func elements(t *testing.T, file []byte, x Tensor) []float64 {
	n, size := 1, x.DType.Size()
	for _, d := range x.Shape {
		n *= d
	}
	out := make([]float64, n)
	for i := range n {
		at := x.Offset
		for k, rest := len(x.Shape)-1, i; k >= 0; k-- {
			at += int64(rest % x.Shape[k] * x.Strides[k] * size)
			rest /= x.Shape[k]
		}
		if err := safetensors.Decode(out[i:i+1], file[at:at+int64(size)], x.DType); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func names(tensors []Tensor) string {
	var names []string
	for _, x := range tensors {
		names = append(names, x.Name)
	}
	return strings.Join(names, " ")
}

func TestModule(t *testing.T) {
	for _, name := range []string{"module.pt", "namespace.pt"} {
		f, err := Read(filepath.Join("testdata", name), "")
		if err != nil {
			t.Fatal(err)
		}
		if got := names(f.Tensors); got != "0.weight 0.bias 1.weight 1.bias 1.running_mean 1.running_var "+
			"1.num_batches_tracked" || f.Key != "model" {
			t.Errorf("%s: under %q: names %s", name, f.Key, got)
		}
	}
}

// TestScripts reads files of torchvision's, timm's and Lightning's scripts and selects state dicts.
func TestScripts(t *testing.T) {
	for _, c := range []struct {
		file, key, found, names, others string
		metadata                        map[string]string
	}{
		{"torchvision.pth", "", "model", "fc.weight fc.bias", "model_ema",
			map[string]string{"epoch": "3", "model": "resnet50"}},
		{"torchvision.pth", "model_ema", "model_ema", "n_averaged module.fc.weight module.fc.bias", "model",
			map[string]string{"epoch": "3", "model": "resnet50"}},
		{"timm.pth.tar", "", "state_dict", "_orig_mod.fc.weight _orig_mod.fc.bias", "state_dict_ema",
			map[string]string{"epoch": "4", "model": "resnet51d"}},
		{"timm.pth.tar", "state_dict_ema", "state_dict_ema", "fc.weight fc.bias", "state_dict",
			map[string]string{"epoch": "4", "model": "resnet51d"}},
		{"lightning.ckpt", "", "state_dict", "model.fc.weight model.fc.bias", "", map[string]string{"epoch": "5"}},
		{"two.pt", "b", "b", "fc.weight fc.bias", "a", map[string]string{}},
		{"attack.pt", "", "", "", "", nil},
	} {
		f, err := Read(filepath.Join("testdata", c.file), c.key)
		if c.names == "" {
			if err == nil || !strings.Contains(err.Error(), "an object of posix.system") {
				t.Errorf("%s: error %v", c.file, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s, key %q: %v", c.file, c.key, err)
			continue
		}
		if names(f.Tensors) != c.names || f.Key != c.found || strings.Join(f.Others, " ") != c.others ||
			!maps.Equal(f.Metadata, c.metadata) {
			t.Errorf("%s, key %q: %+v", c.file, c.key, f)
		}
	}
}

func TestRefuses(t *testing.T) {
	for _, c := range []struct{ name, key, want string }{
		{"whole.pt", "", "an object of torch.nn.modules.container.Sequential was saved"},
		{"expanded.pt", "", "expanded tensors are not read"},
		{"gen.py", "", "not a zip archive"},
		{"missing.pt", "", "missing.pt"},
		{"two.pt", "", "several state dicts, a, b"},
		{"two.pt", "c", "there are state dicts under a, b"},
		{"plain.pt", "model", "without a key"},
		{"torchvision.pth", "args", "an object of argparse.Namespace, not a state dict: " +
			"there are state dicts under model, model_ema"},
	} {
		if _, err := Read(filepath.Join("testdata", c.name), c.key); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one that says %q", c.name, err, c.want)
		}
	}
}

// stored makes a zip archive; entries whose names end in "!" are compressed.
func stored(t testing.TB, entries ...string) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := 0; i < len(entries); i += 2 {
		name, method := entries[i], zip.Store
		if n, ok := strings.CutSuffix(name, "!"); ok {
			name, method = n, zip.Deflate
		}
		e, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: method})
		if err != nil {
			t.Fatal(err)
		}
		e.Write([]byte(entries[i+1]))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// onePickle is a state dict with a tensor w of the given shape and strides over a storage "0".
func onePickle(elements byte, offset byte, shape, strides string) string {
	return "\x80\x02}X\x01\x00\x00\x00wctorch._utils\n_rebuild_tensor_v2\n(" +
		"(X\x07\x00\x00\x00storagectorch\nFloatStorage\n" +
		"X\x01\x00\x00\x000X\x03\x00\x00\x00cpuK" + string(elements) + "tQK" + string(offset) + shape + strides + "\x89}tRs."
}

// laughs nests pairs of pairs in the memo to the given depth; written out, the last one would be 2^(depth−1) empty
// tuples.
func laughs(depth byte) string {
	s := ")q\x000"
	for i := byte(1); i < depth; i++ {
		s += "h" + string([]byte{i - 1}) + "h" + string([]byte{i - 1}) + "\x86q" + string([]byte{i}) + "0"
	}
	return s
}

func TestHostile(t *testing.T) {
	data := strings.Repeat("\x00", 64)
	huge := "J\xff\xff\xff\x7f"
	for _, c := range []struct {
		name string
		file []byte
		want string
	}{
		{"compressed pickle", stored(t, "a/data.pkl!", strings.Repeat("}", 1<<20)), "compressed"},
		{"compressed storage", stored(t, "a/data.pkl", onePickle(16, 0, "K\x10\x85", "K\x01\x85"), "a/data/0!", data),
			"compressed"},
		{"storage too short", stored(t, "a/data.pkl", onePickle(17, 0, "K\x10\x85", "K\x01\x85"), "a/data/0", data),
			"17 elements"},
		{"no storage", stored(t, "a/data.pkl", onePickle(16, 0, "K\x10\x85", "K\x01\x85"), "a/data/../0", data), "no entry"},
		{"beyond the storage", stored(t, "a/data.pkl", onePickle(16, 1, "K\x10\x85", "K\x01\x85"), "a/data/0", data),
			"leaves its storage"},
		{"strides beyond", stored(t, "a/data.pkl", onePickle(16, 0, "K\x02\x85", "K\x10\x85"), "a/data/0", data),
			"leaves its storage"},
		{"huge strides", stored(t, "a/data.pkl", onePickle(16, 0, "K\x02"+"K\x02"+"\x86", huge+huge+"\x86"), "a/data/0",
			data), "leaves its storage"},
		{"huge shape", stored(t, "a/data.pkl", onePickle(16, 0, huge+huge+huge+"\x87", "K\x00K\x00K\x00\x87"), "a/data/0",
			data), "expanded"},
		{"negative shape", stored(t, "a/data.pkl", onePickle(16, 0, "J\xff\xff\xff\xff\x85", "K\x01\x85"), "a/data/0", data),
			"in place of an extent"},
		{"no pickle", stored(t, "a/other", data), "without data.pkl"},
		{"two pickles", stored(t, "a/data.pkl", ".", "b/data.pkl", "."), "two data.pkl"},
		{"script", stored(t, "a/data.pkl", ".", "a/constants.pkl", "."), "TorchScript"},
		{"big endian", stored(t, "a/data.pkl", ".", "a/byteorder", "big"), "byte order"},
		{"long pickle", stored(t, "a/data.pkl", strings.Repeat("}", maxPickle+1)), "more than"},
		{"many values", stored(t, "a/data.pkl", strings.Repeat("}", 8<<20)), "take more than"},
		{"a billion laughs", stored(t, "a/data.pkl", "\x80\x02]q\x00"+strings.Repeat("(h\x00h\x00h\x00h\x00h\x00h\x00e",
			1<<19)+"."), "take more than"},
		{"laughing key", stored(t, "a/data.pkl", "\x80\x02"+laughs(24)+"ccollections\nOrderedDict\n]h\x17N\x86a\x85R."),
			"holds None"},
		{"a call of what a call gave", stored(t, "a/data.pkl", "\x80\x02cos\nsystem\n)R)R."),
			"an object of a class of its own was saved"},
		{"a call of no arguments", stored(t, "a/data.pkl", "\x80\x02cos\nsystem\nNR."), "with None"},
		{"a dict within itself", stored(t, "a/data.pkl", "\x80\x02}q\x00X\x05\x00\x00\x00modelh\x00s."), "holds a dict"},
		{"a storage within another", stored(t, "a/data.pkl", "\x80\x02(X\x07\x00\x00\x00storagectorch\nFloatStorage\n"+
			"X\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x10K\x01tQ."), "part of another"},
		{"a storage of a class", stored(t, "a/data.pkl", "\x80\x02(X\x07\x00\x00\x00storagecos\nsystem\n"+
			"X\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x10tQ."), "os.system, whose elements"},
		{"old and cut short", []byte(oldMagic + "\x80\x02M\xe9\x03."), "cut short"},
		{"old of another version", []byte(oldMagic + "\x80\x02M\xe8\x03."), "version 1000"},
		{"laughing offset", stored(t, "a/data.pkl", "\x80\x02"+laughs(24)+"ctorch._utils\n_rebuild_tensor_v2\n(Nh\x17))tR."),
			"of None at"},
		{"long string", stored(t, "a/data.pkl", "\x80\x02X\xff\xff\xff\xffa."), "cut short"},
		{"a number", stored(t, "a/data.pkl", "\x80\x02K\x01."), "not a state dict"},
		{"no tensor", stored(t, "a/data.pkl", "\x80\x02}U\x01aK\x01s."), `key "a" holds a number`},
		{"empty", stored(t, "a/data.pkl", "\x80\x02}."), "empty state dict"},
		{"instance", stored(t, "a/data.pkl", "\x80\x02(ios\nsystem\n."), "an object of os.system was saved"},
		{"new object", stored(t, "a/data.pkl", "\x80\x02cos\nsystem\n)\x81."), "an object of os.system was saved"},
		{"extension", stored(t, "a/data.pkl", "\x80\x02\x82\x01."), "opcode EXT1"},
		{"old protocol", stored(t, "a/data.pkl", "(dp0\n."), "not an opcode"},
		{"nothing to stop at", stored(t, "a/data.pkl", "\x80\x02}"), "cut short"},
		{"stack underflow", stored(t, "a/data.pkl", "\x80\x02R."), "missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := allocated()
			_, err := read(bytes.NewReader(c.file), int64(len(c.file)), "")
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one that says %q", err, c.want)
			}
			if used := allocated() - before; used > 2*uint64(valuesOf(len(c.file))+len(c.file)) {
				t.Errorf("%d MB were allocated in all", used>>20)
			}
		})
	}
}

// TestOldLongPickle reads an old file whose pickles are longer than those sought first.
func TestOldLongPickle(t *testing.T) {
	text := func(s string) string {
		return "X" + string(binary.LittleEndian.AppendUint32(nil, uint32(len(s)))) + s
	}
	state := onePickle(16, 0, "K\x10\x85", "K\x01\x85")
	file := oldMagic + "\x80\x02M\xe9\x03." + "\x80\x02}" + text("little_endian") + "\x88s." +
		"\x80\x02}(" + text("note") + text(strings.Repeat("n", firstPickles)) + text("state_dict") +
		state[2:len(state)-1] + "u." + "\x80\x02]" + text("0") + "a." + "\x10" + strings.Repeat("\x00", 7+64)
	f, err := read(strings.NewReader(file), int64(len(file)), "")
	if err != nil || len(f.Tensors) != 1 || f.Tensors[0].Offset != int64(len(file)-64) {
		t.Errorf("%+v, %v", f, err)
	}
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// TestHostileDirectory reads false directories.
func TestHostileDirectory(t *testing.T) {
	good := stored(t, "a/data.pkl", onePickle(16, 0, "K\x10\x85", "K\x01\x85"), "a/data/0", strings.Repeat("\x00", 64))
	if _, err := read(bytes.NewReader(good), int64(len(good)), ""); err != nil {
		t.Fatal(err)
	}
	end := bytes.LastIndex(good, []byte("PK\x05\x06"))
	central := bytes.Index(good, []byte("PK\x01\x02"))
	for name, change := range map[string]func(b []byte){
		"more entries":     func(b []byte) { b[end+10] = 200 },
		"a huge directory": func(b []byte) { binary.LittleEndian.PutUint32(b[end+12:], math.MaxUint32-1) },
		"one elsewhere":    func(b []byte) { binary.LittleEndian.PutUint32(b[end+16:], 1<<30) },
		"zip64 without":    func(b []byte) { binary.LittleEndian.PutUint32(b[end+16:], math.MaxUint32) },
		"a long name":      func(b []byte) { binary.LittleEndian.PutUint16(b[central+28:], 60000) },
		"a huge entry": func(b []byte) {
			binary.LittleEndian.PutUint32(b[central+20:], 1<<30)
			binary.LittleEndian.PutUint32(b[central+24:], 1<<30)
		},
		"a header elsewhere": func(b []byte) { binary.LittleEndian.PutUint32(b[central+42:], 1<<30) },
		"encryption":         func(b []byte) { b[central+8] |= 1 },
	} {
		b := bytes.Clone(good)
		change(b)
		if _, err := read(bytes.NewReader(b), int64(len(b)), ""); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for n := range good {
		if _, err := read(bytes.NewReader(good[:n]), int64(n), ""); err == nil {
			t.Errorf("cut to %d bytes: no error", n)
		}
	}
}

// FuzzRead reads arbitrary files; tensors of accepted files lie within them.
func FuzzRead(f *testing.F) {
	for _, name := range []string{"plain.pt", "wrapped.pth", "module.pt", "legacy.pt", "torchvision.pth",
		"lightning.ckpt"} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		f, err := read(bytes.NewReader(b), int64(len(b)), "")
		if err == nil {
			inside(t, f.Tensors, int64(len(b)))
		}
	})
}

// FuzzPickle reads arbitrary pickles over one storage of 64 bytes.
func FuzzPickle(f *testing.F) {
	f.Add([]byte(onePickle(16, 0, "K\x10\x85", "K\x01\x85")))
	f.Add([]byte("\x80\x04\x8c\x05torch\x8c\x04Size\x93\x94)R."))
	f.Fuzz(func(t *testing.T, b []byte) {
		m := machine(b, 0, func(string) (*place, error) { return &place{bytes: 64}, nil })
		v, err := m.Run()
		if err != nil {
			return
		}
		if f, err := find(v, ""); err == nil {
			inside(t, f.Tensors, 64)
		}
	})
}

func inside(t *testing.T, tensors []Tensor, size int64) {
	for _, x := range tensors {
		last, empty := x.Offset, false
		for i, d := range x.Shape {
			last += int64(d-1) * int64(x.Strides[i]) * int64(x.DType.Size())
			empty = empty || d == 0
		}
		if !empty && (x.Offset < 0 || last+int64(x.DType.Size()) > size) {
			t.Errorf("%+v lies outside %d bytes", x, size)
		}
	}
}

// TestOldHostile changes an old-format file byte by byte, and truncates it: accepted tensors lie within the file.
func TestOldHostile(t *testing.T) {
	good, err := os.ReadFile("testdata/legacy.pt")
	if err != nil {
		t.Fatal(err)
	}
	for i := range good {
		if _, err := read(bytes.NewReader(good[:i]), int64(i), ""); err == nil {
			t.Errorf("cut to %d bytes: no error", i)
		}
		for _, x := range []byte{0, 0x7f, 0xff} {
			b := bytes.Clone(good)
			b[i] = x
			if f, err := read(bytes.NewReader(b), int64(len(b)), ""); err == nil {
				inside(t, f.Tensors, int64(len(b)))
			}
		}
	}
}
