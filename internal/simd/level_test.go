package simd

import "testing"

func TestChoose(t *testing.T) {
	amd64 := []Level{Go, AVX2, AVX512}
	for _, c := range []struct {
		value string
		all   []Level
		want  Level
		fails bool
	}{
		{"", amd64, AVX512, false},
		{"", amd64[:1], Go, false},
		{"avx2", amd64, AVX2, false},
		{"GO", amd64, Go, false},
		{"avx512", amd64, AVX512, false},
		{"avx512", amd64[:2], AVX2, true},
		{"sse", amd64[:2], AVX2, true},
		{"neon", amd64, AVX512, true},
		{"neon", []Level{Go, NEON}, NEON, false},
		{"avx2", []Level{Go, NEON}, NEON, true},
	} {
		got, narrow, err := choose(c.value, c.all, false, false)
		if narrow {
			t.Errorf("choose(%q, %v) takes AVX512_BF16, which is not there", c.value, c.all)
		}
		if got != c.want || (err != nil) != c.fails {
			t.Errorf("choose(%q, %v) is %v, %v; want %v", c.value, c.all, got, err, c.want)
		}
	}
	const want = "RNA_CPU: level neon: this processor or build has [go avx2 avx512]"
	if _, _, err := choose("neon", amd64, false, false); err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %s", err, want)
	}
}

func TestChooseBFloat16(t *testing.T) {
	all := []Level{Go, AVX2, AVX512}
	for value, want := range map[string]bool{"": true, "avx512bf16": true, "AVX512BF16": true, "avx512": false, "avx2": false, "go": false} {
		if _, got, err := choose(value, all, true, true); got != want || err != nil {
			t.Errorf("%q: AVX512_BF16 is %v, %v", value, got, err)
		}
		if _, got, err := choose(value, all, true, false); got != (want && value != "") || err != nil {
			t.Errorf("%q: AVX512_BF16, which is slow, is %v, %v", value, got, err)
		}
	}
	if _, on, err := choose("avx512bf16", all, false, false); on || err == nil {
		t.Error("a processor without AVX512_BF16 takes it")
	}
}

func TestForceBFloat16(t *testing.T) {
	if !HasBFloat16() {
		t.Skip("no AVX512_BF16")
	}
	defer Force(AVX512)()
	for _, on := range []bool{false, true} {
		restore := ForceBFloat16(on)
		if BFloat16() != on {
			t.Errorf("forced %v: BFloat16 is %v", on, BFloat16())
		}
		restore()
	}
	defer ForceBFloat16(true)()
	defer Force(AVX2)()
	if BFloat16() {
		t.Error("AVX2 has AVX512_BF16")
	}
}

func TestNames(t *testing.T) {
	for _, l := range []Level{Go, NEON, AVX2, AVX512} {
		if got, err := Parse(l.String()); got != l || err != nil {
			t.Errorf("%v is parsed as %v, %v", l, got, err)
		}
	}
}

func TestForce(t *testing.T) {
	before := Current()
	for _, l := range All() {
		restore := Force(l)
		if Current() != l {
			t.Errorf("forced %v: current is %v", l, Current())
		}
		restore()
		if Current() != before {
			t.Errorf("restored %v: current is %v", before, Current())
		}
	}
}

// Tests run at the level that Variable asks for, not at another one.
func TestVariable(t *testing.T) {
	if err := Err(); err != nil {
		t.Error(err)
	}
}
