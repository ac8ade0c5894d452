package safetensors

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// hostileLen is the length of hostile headers.
const hostileLen = 8 << 20

// hostile are headers that take as much work as possible.
func hostile() map[string]string {
	fill := func(begin, end string, each func(i int) string) string {
		var b strings.Builder
		b.WriteString(begin)
		for i := 0; ; i++ {
			s := each(i)
			if b.Len()+len(s)+len(end) > hostileLen {
				break
			}
			b.WriteString(s)
		}
		return b.String() + strings.Repeat(" ", hostileLen-b.Len()-len(end)) + end
	}
	return map[string]string{
		"many tensors": fill("{", `"":{}}`, func(i int) string {
			return fmt.Sprintf(`"%d":{"dtype":"U8","shape":[],"data_offsets":[%d,%d]},`, i, i, i+1)
		}),
		"many empty tensors out of order": fill("{", `"":{}}`, func(i int) string {
			return fmt.Sprintf(`"%d":{"dtype":"U8","shape":[0],"data_offsets":[%d,%d]},`,
				i*7919%1000003, i*7919%hostileLen, i*7919%hostileLen)
		}),
		"many tensors until the end": fill("{", `"":{}}`, func(i int) string {
			return fmt.Sprintf(`"%d":{"dtype":"U8","shape":[0],"data_offsets":[%d,%d]},`, i, i*7919%1000, i*7919%1000)
		}),
		"holes": fill("{", `"":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, func(i int) string {
			return fmt.Sprintf(`"%d":{"dtype":"U8","shape":[0],"data_offsets":[%d,%d]},`,
				i*7919%1000003, i*7919%1000, i*7919%1000)
		}),
		"metadata": fill(`{"__metadata__":{`, `"":""}`, func(i int) string { return fmt.Sprintf(`"%d":"",`, i) }),
		"escapes": fill(`{"__metadata__":{`, `"":""}`, func(i int) string {
			return fmt.Sprintf(`"\u00%02x%d":"\n",`, 32+i%64, i)
		}),
		"one string":        fill(`{"`, `"}`, func(int) string { return `\n` }),
		"nested arrays":     fill(`{"a":{"x":`, `}}`, func(int) string { return "[" }),
		"nested objects":    fill(`{"a":`, `}`, func(int) string { return `{"":` }),
		"a wide array":      fill(`{"a":{"x":[`, `0]}}`, func(int) string { return "0," }),
		"a long shape":      fill(`{"a":{"shape":[`, `0]}}`, func(int) string { return "1," }),
		"many shapes":       fill(`{"a":{`, `"shape":[0]}}`, func(int) string { return `"shape":[1,1,1,1],` }),
		"a long number":     fill(`{"a":{"shape":[1`, `]}}`, func(int) string { return "0" }),
		"spaces":            fill(``, `{}x`, func(int) string { return " " }),
		"garbage":           fill("\x01", ``, func(int) string { return "\xff" }),
		"unknown fields":    fill(`{"a":{`, `"x":0}}`, func(i int) string { return fmt.Sprintf(`"%d":{"a":[1]},`, i) }),
		"one unended value": fill(`{"a":{"x":"`, ``, func(int) string { return "a" }),
	}
}

// Hostile headers are rejected with memory of less than twelve times their bytes. BenchmarkHostileHeaders measures the time.
func TestHostileHeaders(t *testing.T) {
	for name, head := range hostile() {
		t.Run(name, func(t *testing.T) {
			path := writeRaw(t, raw(head, 1000))
			before := allocated()
			f, err := Open(path)
			if err == nil {
				f.Close()
				t.Fatal("it was accepted")
			}
			if n := allocated() - before; n >= 12*hostileLen {
				t.Fatalf("%d MB were allocated in all", n>>20)
			}
		})
	}
}

func BenchmarkHostileHeaders(b *testing.B) {
	for name, head := range hostile() {
		b.Run(name, func(b *testing.B) {
			path := writeRaw(b, raw(head, 1000))
			for b.Loop() {
				if f, err := Open(path); err == nil {
					f.Close()
					b.Fatal("it was accepted")
				}
			}
		})
	}
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// Headers with more tensors than any net are read, also with fields unknown to the format.
func TestManyTensors(t *testing.T) {
	const n = 20_000
	var b strings.Builder
	b.WriteString(` { "__metadata__" : {"a":"\u00e9\/\ud83d\ude00"} , ` +
		`"empty":{"data_offsets":[0,0],"new":[{"a":null},-1.5e-3,true],"shape":[0,3],"dtype":"BF16"}`)
	for i := range n {
		fmt.Fprintf(&b, `,"model.layers.%d.weight":{"dtype":"F16","shape":[1,2],"data_offsets":[%d,%d]}`, i, 4*i, 4*i+4)
	}
	b.WriteString("}\n")
	f, err := Open(writeRaw(t, raw(b.String(), 4*n)))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if x, ok := f.Lookup("model.layers.19999.weight"); len(f.Tensors) != n+1 || !ok || x.off != 4*n-4 ||
		x.Len() != 2 || f.Metadata["a"] != "é/😀" {
		t.Errorf("%d tensors, the last %+v, metadata %q", len(f.Tensors), x, f.Metadata)
	}
}

// agrees compares an accepted file with encoding/json's reading of its header.
func agrees(t *testing.T, f *File, head []byte) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(head, &all); err != nil {
		t.Fatalf("no JSON was accepted: %v", err)
	}
	var metadata map[string]string
	if m, ok := all["__metadata__"]; ok {
		if err := json.Unmarshal(m, &metadata); err != nil || fmt.Sprint(metadata) != fmt.Sprint(f.Metadata) {
			t.Fatalf("metadata %q, want %q (%v)", f.Metadata, metadata, err)
		}
		delete(all, "__metadata__")
	}
	if len(all) != len(f.Tensors) {
		t.Fatalf("%d tensors, want %d", len(f.Tensors), len(all))
	}
	for _, x := range f.Tensors {
		fields := map[string]json.RawMessage{}
		if err := json.Unmarshal(all[x.Name], &fields); err != nil {
			t.Fatalf("tensor %q: %v", x.Name, err)
		}
		var e entry
		for field, to := range map[string]any{"dtype": &e.DType, "shape": &e.Shape, "data_offsets": &e.Offsets} {
			if err := json.Unmarshal(fields[field], to); err != nil {
				t.Fatalf("tensor %q: %s: %v", x.Name, field, err)
			}
		}
		if e.DType != x.DType || fmt.Sprint(e.Shape) != fmt.Sprint(x.Shape) || e.Offsets[0] != x.off ||
			e.Offsets[1] != x.off+x.bytes {
			t.Fatalf("tensor %+v, want %+v", x, e)
		}
	}
}

// TestWriteMany reads a file of many tensors as it was written; a header that readers refuse is not begun.
func TestWriteMany(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.safetensors")
	var list []Tensor
	for i := range 40_000 {
		list = append(list, Tensor{Name: fmt.Sprintf("model.layers.%d.mlp.experts.%d.w1.weight_scale_of_a_long_name_%d", i/100,
			i%100, i), DType: "U8", Shape: []int{1}})
	}
	w, err := Create(path, list, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range list {
		if err := w.WriteAt(x.Name, []byte{byte(i)}, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.CommitUnsynced(); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if ok, err := f.Verify(); !ok || err != nil || len(f.Tensors) != len(list) {
		t.Errorf("%d tensors, %v, %v", len(f.Tensors), ok, err)
	}
	none := filepath.Join(t.TempDir(), "none.safetensors")
	metadata := map[string]string{"long": strings.Repeat("x", maxHeader)}
	if _, err := Create(none, list[:1], metadata); err == nil || !strings.Contains(err.Error(), "write several files") {
		t.Error(err)
	}
	if left, _ := os.ReadDir(filepath.Dir(none)); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}
