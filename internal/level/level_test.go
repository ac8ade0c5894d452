package level

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
		got, err := choose(c.value, c.all)
		if got != c.want || (err != nil) != c.fails {
			t.Errorf("choose(%q, %v) is %v, %v; want %v", c.value, c.all, got, err, c.want)
		}
	}
	const want = "RNA_CPU: level neon: this processor or build has [go avx2 avx512]"
	if _, err := choose("neon", amd64); err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %s", err, want)
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
