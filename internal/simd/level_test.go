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
		{"avx512bf16", amd64, AVX512, true},
		{"amx", amd64, AVX512, true},
		{"sse", amd64[:2], AVX2, true},
		{"neon", amd64, AVX512, true},
		{"neon", []Level{Go, NEON}, NEON, false},
		{"avx2", []Level{Go, NEON}, NEON, true},
	} {
		p := processor{vectors: c.all, lacks: errNoAMX}
		if got, err := p.choose(c.value); got != c.want || (err != nil) != c.fails {
			t.Errorf("%q of %v is %v, %v; want %v", c.value, c.all, got, err, c.want)
		}
	}
	const want = "level neon: this processor or build has [go avx2 avx512]"
	if _, err := (processor{vectors: amd64, lacks: errNoAMX}).choose("neon"); err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %s", err, want)
	}
}

func TestChooseBFloat16(t *testing.T) {
	fast := processor{vectors: []Level{Go, AVX2, AVX512}, bfloat16: true, fast: true, lacks: errNoAMX}
	slow := fast
	slow.fast = false
	for value, want := range map[string]bool{"": true, "avx512bf16": true, "AVX512BF16": true, "avx512": false,
		"avx2": false, "go": false} {
		if l, err := fast.choose(value); l.BFloat16() != want || err != nil {
			t.Errorf("%q: AVX512_BF16 is %v, %v", value, l.BFloat16(), err)
		}
		if l, err := slow.choose(value); l.BFloat16() != (want && value != "") || err != nil {
			t.Errorf("%q: AVX512_BF16, which is slow, is %v, %v", value, l.BFloat16(), err)
		}
	}
}

func TestLevels(t *testing.T) {
	for _, l := range All() {
		if got, err := Choose(l.String()); got != l || err != nil || l.Vectors() != l || l.BFloat16() || int(l) >= Count {
			t.Errorf("%v is chosen as %v, %v", l, got, err)
		}
	}
	if l, err := Choose(AVX512BF16.String()); (err == nil) != HasBFloat16() || err == nil &&
		(l != AVX512BF16 || l.Vectors() != AVX512) {
		t.Errorf("%v, %v", l, err)
	}
	if l, err := Choose(AMX.String()); (err == nil) != (LacksAMX() == nil) || err == nil &&
		(l != AMX || l.Vectors() != AVX512 || !l.BFloat16()) {
		t.Errorf("%v, %v", l, err)
	}
	if l, err := Choose(""); l != Default() || (err == nil) != (Err() == nil) {
		t.Errorf("the default is %v, %v", l, err)
	}
	if Best() != All()[len(All())-1] {
		t.Errorf("the best is %v of %v", Best(), All())
	}
}

// Tests run exactly at the level in Variable.
func TestVariable(t *testing.T) {
	if err := Err(); err != nil {
		t.Error(err)
	}
}
