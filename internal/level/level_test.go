package level

import "testing"

func TestChoose(t *testing.T) {
	for _, c := range []struct {
		value string
		best  Level
		want  Level
		fails bool
	}{
		{"", AVX512, AVX512, false},
		{"", Go, Go, false},
		{"avx2", AVX512, AVX2, false},
		{"GO", AVX512, Go, false},
		{"avx512", AVX512, AVX512, false},
		{"avx512", AVX2, AVX2, true},
		{"sse", AVX2, AVX2, true},
	} {
		got, err := choose(c.value, c.best)
		if got != c.want || (err != nil) != c.fails {
			t.Errorf("choose(%q, %v) is %v, %v; want %v", c.value, c.best, got, err, c.want)
		}
	}
}

func TestNames(t *testing.T) {
	for _, l := range []Level{Go, AVX2, AVX512} {
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
