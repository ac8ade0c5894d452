package safetensors

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// raw makes a file of a header and data bytes.
func raw(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, data)...)
}

func writeRaw(t testing.TB, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.safetensors")
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// only fails unless dir holds exactly names.
func only(t *testing.T, dir string, names ...string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range list {
		got = append(got, e.Name())
	}
	if !slices.Equal(got, names) {
		t.Errorf("folder holds %q, want %q", got, names)
	}
}

func TestRoundTrip(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "w.safetensors")
	f32 := make([]float32, 3*5000) // longer than the writer's chunk
	for i := range f32 {
		f32[i] = float32(i)/7 - 3
	}
	f32[0], f32[1], f32[2] = float32(math.NaN()), float32(math.Inf(-1)), math.SmallestNonzeroFloat32
	f64 := []float64{math.Pi, math.Copysign(0, -1), math.MaxFloat64, math.Inf(1)}
	i64 := []int64{math.MinInt64, -1, math.MaxInt64}
	i32 := []int32{math.MinInt32, 7}
	tensors := []Tensor{
		{Name: "b", DType: F32, Shape: []int{3, 5000}},
		{Name: "a<&>", DType: F64, Shape: []int{2, 2}},
		{Name: "empty", DType: F32, Shape: []int{4, 0}},
		{Name: "count", DType: I64, Shape: []int{3}},
		{Name: "scalar", DType: F64},
		{Name: "i32", DType: I32, Shape: []int{2}},
	}
	meta := map[string]string{"k": "v \"<>\"", "": "empty key"}
	w, err := Create(path, tensors, meta)
	if err != nil {
		t.Fatal(err)
	}
	for i, data := range []any{f32, f64, []float32{}, i64, []float64{2.5}, i32} {
		if err := w.Write(tensors[i].Name, data); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the file is there before Commit")
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	w.Abort()
	if err := w.Commit(); err == nil {
		t.Error("a second Commit is no error")
	}
	only(t, dir, "w.safetensors")

	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.start%8 != 0 {
		t.Errorf("the data starts at byte %d, not aligned", f.start)
	}
	if fmt.Sprint(f.Metadata) != fmt.Sprint(meta) {
		t.Errorf("metadata %q, want %q", f.Metadata, meta)
	}
	for i, want := range tensors {
		if got := f.Tensors[i]; got.Name != want.Name || got.DType != want.DType || !slices.Equal(got.Shape, want.Shape) {
			t.Errorf("tensor %d: %v, want %v", i, got, want)
		}
	}
	same := func(name string, i int, got, want float64) {
		if math.Float64bits(got) != math.Float64bits(want) && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Fatalf("%s[%d] = %g, want %g", name, i, got, want)
		}
	}
	lookup := func(name string) Tensor {
		x, ok := f.Lookup(name)
		if !ok {
			t.Fatalf("no tensor %q", name)
		}
		return x
	}
	got32 := make([]float32, len(f32))
	if err := f.Float32s(lookup("b"), got32, 0); err != nil {
		t.Fatal(err)
	}
	for i := range got32 {
		same("b", i, float64(got32[i]), float64(f32[i]))
	}
	part := make([]float64, 17)
	if err := f.Float64s(lookup("b"), part, 4321); err != nil {
		t.Fatal(err)
	}
	for i := range part {
		same("part", i, part[i], float64(f32[4321+i]))
	}
	got64 := make([]float64, 4)
	if err := f.Float64s(lookup("a<&>"), got64, 0); err != nil {
		t.Fatal(err)
	}
	for i := range got64 {
		same("a", i, got64[i], f64[i])
	}
	if err := f.Float64s(lookup("scalar"), got64[:1], 0); err != nil || got64[0] != 2.5 {
		t.Errorf("scalar = %g, %v", got64[0], err)
	}
	if err := f.Float32s(lookup("empty"), nil, 0); err != nil {
		t.Error(err)
	}
	if v, err := f.Int64s(lookup("count")); err != nil || !slices.Equal(v, i64) {
		t.Errorf("count = %v, %v", v, err)
	}
	if v, err := f.Int64s(lookup("i32")); err != nil || !slices.Equal(v, []int64{math.MinInt32, 7}) {
		t.Errorf("i32 = %v, %v", v, err)
	}
	for name, err := range map[string]error{
		"beyond the end":    f.Float32s(lookup("b"), got32, 1),
		"negative":          f.Float32s(lookup("b"), got32[:1], -1),
		"floats of ints":    f.Float32s(lookup("count"), got32[:1], 0),
		"no floats of ints": f.Float64s(lookup("i32"), nil, 0),
	} {
		if err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error %v does not name the file", name, err)
		}
	}
	if _, err := f.Int64s(lookup("b")); err == nil {
		t.Error("ints of floats: no error")
	}
}

// TestGolden reads a file of Python's safetensors (testdata/gen.py).
func TestGolden(t *testing.T) {
	f, err := Open("testdata/golden.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Metadata["format"] != "np" || f.Metadata["text"] != "a \"quoted\" <line>\n" {
		t.Errorf("metadata %q", f.Metadata)
	}
	want := []float64{0, math.Copysign(0, -1), 1, -2.5, 65504, 6.103515625e-05}
	for _, name := range []string{"f64", "f32", "f16"} {
		x, ok := f.Lookup(name)
		if !ok || !slices.Equal(x.Shape, []int{2, 3}) {
			t.Fatalf("%s: %v %v", name, x, ok)
		}
		got := make([]float64, 6)
		if err := f.Float64s(x, got, 0); err != nil {
			t.Fatal(err)
		}
		for i := range got {
			if math.Float64bits(got[i]) != math.Float64bits(want[i]) {
				t.Errorf("%s[%d] = %g, want %g", name, i, got[i], want[i])
			}
		}
	}
	for name, want := range map[string][]int64{"i64": {-1, 0, 1 << 62}, "i32": {-1, math.MaxInt32}} {
		x, _ := f.Lookup(name)
		if v, err := f.Int64s(x); err != nil || !slices.Equal(v, want) {
			t.Errorf("%s = %v, %v; want %v", name, v, err, want)
		}
	}
	one := make([]float32, 1)
	for name, want := range map[string]float32{"scalar": 7.5, "näme \"quoted\"\n": 1.5} {
		x, ok := f.Lookup(name)
		if err := f.Float32s(x, one, 0); !ok || err != nil || one[0] != want {
			t.Errorf("%q = %g, %v %v; want %g", name, one[0], ok, err, want)
		}
	}
	if x, ok := f.Lookup("empty"); !ok || x.Len() != 0 || !slices.Equal(x.Shape, []int{0, 4}) {
		t.Errorf("empty: %v %v", x, ok)
	}
	if _, ok := f.Lookup("u8"); !ok {
		t.Error("a tensor of a type that can't be read is not listed")
	}
}

// TestHalves compares all 16-bit values with their definition.
func TestHalves(t *testing.T) {
	var data []byte
	for i := range 1 << 16 {
		data = binary.LittleEndian.AppendUint16(data, uint16(i))
	}
	for _, dt := range []DType{F16, BF16} {
		expBits := map[DType]int{F16: 5, BF16: 8}[dt]
		fracBits := 15 - expBits
		b := raw(fmt.Sprintf(`{"x":{"dtype":%q,"shape":[65536],"data_offsets":[0,131072]}}`, dt), 0)
		f, err := Open(writeRaw(t, append(b, data...)))
		if err != nil {
			t.Fatal(err)
		}
		got := make([]float32, 1<<16)
		if err := f.Float32s(f.Tensors[0], got, 0); err != nil {
			t.Fatal(err)
		}
		f.Close()
		for i, g := range got {
			exp, frac := i>>fracBits&(1<<expBits-1), i&(1<<fracBits-1)
			bias := 1<<(expBits-1) - 1
			m := float64(frac) / float64(int(1)<<fracBits)
			want := math.Ldexp(1+m, exp-bias)
			switch {
			case exp == 0:
				want = math.Ldexp(m, 1-bias)
			case exp == 1<<expBits-1 && frac == 0:
				want = math.Inf(1)
			case exp == 1<<expBits-1:
				want = math.NaN()
			}
			if i>>15 == 1 {
				want = -want
			}
			if float64(g) != want && !(math.IsNaN(want) && math.IsNaN(float64(g))) || math.Signbit(float64(g)) != (i>>15 == 1) {
				t.Fatalf("%s %#04x = %g, want %g", dt, i, g, want)
			}
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	good := `{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"I64","shape":[],"data_offsets":[8,16]}}`
	if f, err := Open(writeRaw(t, raw(good, 16))); err != nil {
		t.Fatal(err)
	} else {
		f.Close()
	}
	tensor := func(dtype, shape, offsets string) string {
		return fmt.Sprintf(`{"a":{"dtype":%q,"shape":%s,"data_offsets":%s}}`, dtype, shape, offsets)
	}
	huge := raw(good, 16)
	binary.LittleEndian.PutUint64(huge, math.MaxUint64)
	large := raw(good, 16)
	binary.LittleEndian.PutUint64(large, maxHeader+1)
	for _, c := range []struct {
		name, message string
		file          []byte
	}{
		{"empty file", "shorter than 8 bytes", nil},
		{"seven bytes", "shorter than 8 bytes", make([]byte, 7)},
		{"no header", "not JSON", raw("", 0)},
		{"zip of torch.save", "torch.save", []byte("PK\x03\x04\x00\x00\x08\x08\x00\x00")},
		{"pickle of torch.save", "torch.save", []byte("\x80\x02\x8a\x0al\xfc\x9cF")},
		{"huge length", "cut short", huge},
		{"large length", "cut short", large},
		{"header cut short", "cut short", raw(good, 0)[:40]},
		{"not JSON", "not JSON", raw(`{"a":`, 4)},
		{"garbage behind", "not JSON", raw(good+"x", 16)},
		{"an array", "not a JSON object", raw(`[1]`, 0)},
		{"null", "not a JSON object", raw(`null`, 0)},
		{"name twice", `"a" occurs twice`, raw(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},`+
			`"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, 8)},
		{"name twice, one part each", `"a" occurs twice`, raw(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},`+
			`"a":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}}`, 16)},
		{"metadata of numbers", "metadata", raw(`{"__metadata__":{"a":1}}`, 0)},
		{"a tensor that is a number", `tensor "a"`, raw(`{"a":1}`, 0)},
		{"null tensor", `tensor "a"`, raw(`{"a":null}`, 0)},
		{"no shape", `tensor "a"`, raw(`{"a":{"dtype":"F32","data_offsets":[0,4]}}`, 4)},
		{"no type", "unknown element type", raw(`{"a":{"shape":[1],"data_offsets":[0,4]}}`, 4)},
		{"unknown type", `unknown element type "F128"`, raw(tensor("F128", "[1]", "[0,16]"), 16)},
		{"one offset", "two offsets", raw(tensor("F32", "[1]", "[0]"), 4)},
		{"three offsets", "two offsets", raw(tensor("F32", "[1]", "[0,4,8]"), 4)},
		{"negative offset", "do not hold", raw(tensor("F32", "[1]", "[-4,0]"), 4)},
		{"offsets reversed", "do not hold", raw(tensor("F32", "[1]", "[4,0]"), 4)},
		{"fractional offset", `tensor "a"`, raw(tensor("F32", "[1]", "[0,4.5]"), 4)},
		{"offset beyond int64", `tensor "a"`, raw(tensor("F32", "[1]", "[0,18446744073709551616]"), 4)},
		{"wrong size", "do not hold", raw(tensor("F32", "[3]", "[0,8]"), 8)},
		{"negative extent", "negative extent", raw(tensor("F32", "[-1,-2]", "[0,8]"), 8)},
		{"overflow", "too large", raw(tensor("F32", "[4294967296,4294967296]", "[0,0]"), 0)},
		{"overflow to small", "too large", raw(tensor("U8", "[9223372036854775807,2,2]", "[0,4]"), 4)},
		{"hole", "overlap or hole", raw(`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},`+
			`"b":{"dtype":"U8","shape":[2],"data_offsets":[3,5]}}`, 5)},
		{"hole in front", "overlap or hole", raw(tensor("U8", "[2]", "[1,3]"), 3)},
		{"overlap", "overlap or hole", raw(`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},`+
			`"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}`, 3)},
		{"the same bytes", "overlap or hole", raw(`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},`+
			`"b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}`, 2)},
		{"data cut short", "cut short or overlong", raw(good, 15)},
		{"data too long", "cut short or overlong", raw(good, 17)},
		{"sum beyond int64", "do not hold", raw(`{"a":{"dtype":"U8","shape":[4611686018427387904],`+
			`"data_offsets":[9223372036854775807,-1]}}`, 0)},
	} {
		path := writeRaw(t, c.file)
		f, err := Open(path)
		if err == nil {
			f.Close()
			t.Errorf("%s: no error", c.name)
			continue
		}
		if !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), c.message) {
			t.Errorf("%s: error %q does not name the file or say %q", c.name, err, c.message)
		}
	}
	if _, err := Open(t.TempDir()); err == nil {
		t.Error("a folder is opened")
	}
	if _, err := Open(filepath.Join(t.TempDir(), "no.safetensors")); err == nil {
		t.Error("a missing file is opened")
	}
}

func TestWriterRefuses(t *testing.T) {
	two := []Tensor{{Name: "a", DType: F32, Shape: []int{2}}, {Name: "b", DType: I64, Shape: []int{1}}}
	for name, write := range map[string]func(w *Writer) error{
		"out of turn":    func(w *Writer) error { return w.Write("b", []int64{1}) },
		"unknown name":   func(w *Writer) error { return w.Write("c", []int64{1}) },
		"wrong type":     func(w *Writer) error { return w.Write("a", []float64{1, 2}) },
		"unknown type":   func(w *Writer) error { return w.Write("a", "12") },
		"too short":      func(w *Writer) error { return w.Write("a", []float32{1}) },
		"too long":       func(w *Writer) error { return w.Write("a", []float32{1, 2, 3}) },
		"twice":          func(w *Writer) error { w.Write("a", []float32{1, 2}); return w.Write("a", []float32{1, 2}) },
		"incomplete":     func(w *Writer) error { w.Write("a", []float32{1, 2}); return w.Commit() },
		"after an error": func(w *Writer) error { w.Write("c", nil); return w.Write("a", []float32{1, 2}) },
		"after Abort":    func(w *Writer) error { w.Abort(); return w.Write("a", []float32{1, 2}) },
	} {
		dir := t.TempDir()
		w, err := Create(filepath.Join(dir, "w.safetensors"), two, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := write(w); err == nil {
			t.Errorf("%s: no error", name)
		}
		if err := w.Commit(); err == nil {
			t.Errorf("%s: Commit after the error succeeds", name)
		}
		w.Abort()
		only(t, dir)
	}
	dir := t.TempDir()
	for name, list := range map[string][]Tensor{
		"name twice":      {two[0], two[0]},
		"metadata's name": {{Name: "__metadata__", DType: F32}},
		"not UTF-8":       {{Name: "\xff", DType: F32}},
		"unknown type":    {{Name: "a", DType: "F3"}},
		"negative extent": {{Name: "a", DType: F32, Shape: []int{-1}}},
	} {
		if _, err := Create(filepath.Join(dir, "w.safetensors"), list, nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := Create(filepath.Join(dir, "no", "w.safetensors"), two, nil); err == nil {
		t.Error("missing folder: no error")
	}
	only(t, dir)
}

// TestReplace checks that an aborted write leaves the previous file unchanged.
func TestReplace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "w.safetensors")
	list := []Tensor{{Name: "a", DType: F32, Shape: []int{1}}}
	put := func(x float32, commit bool) {
		w, err := Create(path, list, nil)
		if err == nil {
			err = w.Write("a", []float32{x})
		}
		if err == nil && commit {
			err = w.Commit()
		}
		if err != nil {
			t.Fatal(err)
		}
		w.Abort()
	}
	for _, c := range []struct {
		x      float32
		commit bool
		want   float32
	}{{1, true, 1}, {2, false, 1}, {3, true, 3}} {
		put(c.x, c.commit)
		only(t, dir, "w.safetensors")
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		got := make([]float32, 1)
		if err := f.Float32s(f.Tensors[0], got, 0); err != nil || got[0] != c.want {
			t.Errorf("holds %g, %v; want %g", got[0], err, c.want)
		}
		f.Close()
	}
}

// TestWhatIsThere checks that a link stays a link, and that non-files stay untouched.
func TestWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	list := []Tensor{{Name: "a", DType: F32, Shape: []int{1}}}
	if _, err := Create(dir, list, nil); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("a folder: %v", err)
	}
	if _, err := Create(os.DevNull, list, nil); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("%s: %v", os.DevNull, err)
	}
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Skip(err)
	}
	w, err := Create(link, list, nil)
	if err == nil {
		err = errors.Join(w.Write("a", []float32{1}), w.Commit())
	}
	if err != nil {
		t.Fatal(err)
	}
	st, err := os.Lstat(link)
	if err != nil || st.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is %v, %v", st.Mode(), err)
	}
	if st, err := os.Stat(file); err != nil || st.Size() == 0 {
		t.Errorf("the file it leads to is empty, %v", err)
	}
}

// FuzzOpen opens arbitrary headers and reads all tensors of accepted files.
func FuzzOpen(f *testing.F) {
	f.Add([]byte(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},`+
		`"b":{"dtype":"I64","shape":[],"data_offsets":[8,16]}}`), 16)
	f.Add([]byte(`{"__metadata__":{"a":"b"},"e":{"dtype":"F16","shape":[0,3],"data_offsets":[0,0]}}  `), 0)
	f.Add([]byte(`{"a":{"dtype":"BF16","shape":[4294967296,4294967296],"data_offsets":[-1,9223372036854775807]}}`), 3)
	f.Add([]byte(`{"a":{"DTYPE":"I32","shape":[1],"data_offsets":[0,4]},"a":null}`), 4)
	path := filepath.Join(f.TempDir(), "x.safetensors")
	f.Fuzz(func(t *testing.T, header []byte, size int) {
		if err := os.WriteFile(path, raw(string(header), max(0, min(size, 1<<12))), 0o644); err != nil {
			t.Fatal(err)
		}
		file, err := Open(path)
		if err != nil {
			return
		}
		defer file.Close()
		agrees(t, file, []byte(header))
		total := 0
		for _, x := range file.Tensors {
			total += int(x.bytes)
			switch {
			case x.DType.Float():
				err = file.Float64s(x, make([]float64, x.Len()), 0)
			case x.DType.Integer():
				_, err = file.Int64s(x)
			}
			if err != nil {
				t.Fatalf("a tensor that was accepted cannot be read: %v", err)
			}
		}
		if total > 1<<12 {
			t.Fatalf("tensors of %d bytes in a file of %d", total, 1<<12)
		}
	})
}
