package ptx

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"
)

// Some blocks run on memory of zeros, and instructions have costs.
func TestCounting(t *testing.T) {
	m, err := Parse(program("", `
	ld.global.u32 	%r6, [%rd2];
	mov.u32 	%r7, %r6;
	setp.ne.s32 	%p1, %r6, 0;
	@%p1 trap;
	st.global.u32 	[%rd2], 7;
	ld.global.u32 	%r6, [%rd2];
	setp.ne.s32 	%p1, %r6, 0;
	@%p1 div.u32 	%r7, %r1, %r6;
	@!%p1 div.s64 	%rd4, %rd2, %rd1;`), Options{})
	if err != nil {
		t.Fatal(err)
	}
	k := m.Kernel("k")
	_, err = k.Run(Launch{Blocks: [3]int{5, 1, 1}, Threads: [3]int{32, 1, 1}, Only: []int{1, 4},
		Memory: NewZeros(), Parameters: [][]byte{make([]byte, 8), make([]byte, 4)}})
	if err == nil || !strings.Contains(err.Error(), "division") && !strings.Contains(err.Error(), "zero") {
		t.Errorf("%v; want a division by the first parameter, which is 0", err)
	}
	costs := map[string]uint64{"mov.u32 %r7": 0, "setp.ne": 1, "@%p1 div.u32": 18, "@!%p1 div.s64": 70, "ld.global": 1}
	for i := range k.Instructions() {
		for start, want := range costs {
			if _, text, _ := strings.Cut(k.Instruction(i), ": "); strings.HasPrefix(text, start) && k.Cost(i) != want {
				t.Errorf("%s costs %d, want %d", text, k.Cost(i), want)
			}
		}
	}
	if !slices.Equal(k.Sizes(), []int{8, 4}) {
		t.Errorf("parameters of %v bytes", k.Sizes())
	}
	stats, err := k.Run(Launch{Blocks: [3]int{5, 1, 1}, Threads: [3]int{32, 1, 1}, Only: []int{1, 4},
		Memory: NewZeros(), Parameters: [][]byte{binary.LittleEndian.AppendUint64(nil, base), make([]byte, 4)}})
	if err != nil || stats.Ran[0] != 64 {
		t.Errorf("%d threads ran, %v; want the 64 of two blocks", stats.Ran[0], err)
	}
}

// Two numbers become the halves of a word, the second the low one.
func TestPairs(t *testing.T) {
	for kind, want := range map[string]uint32{"bf16x2": 0x3f80c000, "f16x2": 0x3c00c000} {
		got, err := run(t, program("", `
	mov.f32 	%f1, 0f3f800000;
	mov.f32 	%f2, 0fc0000000;
	cvt.rn.`+kind+`.f32 	%r6, %f1, %f2;
	st.global.u32 	[%rd2], %r6;`), 1, 1, 0, Forward, 0)
		if err != nil || got[0] != want {
			t.Errorf("%s: %#x, %v; want %#x", kind, got, err, want)
		}
	}
}
