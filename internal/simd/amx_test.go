package simd

import (
	"errors"
	"syscall"
	"testing"
)

func TestAMX(t *testing.T) {
	for _, c := range []struct {
		name    string
		has     bool
		xcr0    uint32
		request error
		want    string
	}{
		{"permitted", true, 0x600e7, nil, ""},
		{"no AMX", false, 0x600e7, nil, errNoAMX.Error()},
		{"no tiles in XCR0", true, 0xe7, nil, "the operating system does not enable AMX"},
		{"configuration alone", true, 0x200e7, nil, "the operating system does not enable AMX"},
		{"contents alone", true, 0x400e7, nil, "the operating system does not enable AMX"},
		{"refused", true, 0x600e7, syscall.EPERM, "the operating system does not permit AMX: operation not permitted"},
		{"unknown request", true, 0x600e7, syscall.EINVAL, "the operating system does not permit AMX: invalid argument"},
		{"no such call", true, 0x600e7, syscall.ENOSYS, "the operating system does not permit AMX: function not implemented"},
	} {
		said, asked := "", false
		err := amx(c.has, func() uint32 { return c.xcr0 }, func() error { asked = true; return c.request })
		if err != nil {
			said = err.Error()
		}
		if said != c.want || asked != (c.has && c.xcr0&tileState == tileState) ||
			c.request != nil && !errors.Is(err, c.request) {
			t.Errorf("%s: %q, want %q; the system was asked: %v", c.name, said, c.want, asked)
		}
	}
}

func TestChooseAMX(t *testing.T) {
	amd64 := []Level{Go, AVX2, AVX512}
	refused := errors.New("the system refuses")
	for _, c := range []struct {
		value   string
		p       processor
		want    Level
		fails   string
		summary string
	}{
		{"", processor{vectors: amd64, bfloat16: true}, AMX, "",
			"avx512 and amx (bfloat16, and float32 in parts)"},
		{"", processor{vectors: amd64, bfloat16: true, fast: true}, AMX, "", "avx512 and amx (bfloat16, and float32 in parts)"},
		{"AMX", processor{vectors: amd64, bfloat16: true}, AMX, "", "avx512 and amx (bfloat16, and float32 in parts)"},
		{"avx512bf16", processor{vectors: amd64, bfloat16: true}, AVX512BF16, "", "avx512 and avx512bf16"},
		{"avx512", processor{vectors: amd64, bfloat16: true}, AVX512, "", "avx512"},
		{"avx2", processor{vectors: amd64, bfloat16: true}, AVX2, "", "avx2"},
		{"go", processor{vectors: amd64, bfloat16: true}, Go, "", "go"},
		{"", processor{vectors: amd64, bfloat16: true, lacks: refused}, AVX512, "", "avx512; the system refuses"},
		{"", processor{vectors: amd64, bfloat16: true, fast: true, lacks: refused}, AVX512BF16, "",
			"avx512 and avx512bf16; the system refuses"},
		{"amx", processor{vectors: amd64, bfloat16: true, lacks: refused}, AVX512, "level amx: the system refuses",
			"avx512; the system refuses"},
		{"amx", processor{vectors: amd64[:2], lacks: errNoAMX}, AVX2, "level amx: " + errNoAMX.Error(), "avx2"},
	} {
		l, err := c.p.choose(c.value)
		said := ""
		if err != nil {
			said = err.Error()
		}
		if l != c.want || said != c.fails {
			t.Errorf("%q of %+v is %v, %q; want %v, %q", c.value, c.p, l, said, c.want, c.fails)
		}
		if got := c.p.summary(l); got != c.summary {
			t.Errorf("%v of %+v: %q, want %q", l, c.p, got, c.summary)
		}
	}
}
