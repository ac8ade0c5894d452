package ptx

import (
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const head = `
.version 9.5
.target sm_90
.address_size 64
	// .globl	k
`

// program is a kernel k with one pointer, in %rd1, and one number, in %r1. %r2 is the thread, %r3 the block, %rd2 the
// address of the thread's 4 bytes. Registers %r, %rd, %f, %rs and %p go up to 40.
func program(declared, body string) string {
	return head + declared + `
.visible .entry k(
	.param .u64 k_param_0,
	.param .u32 k_param_1
)
.maxntid 256, 1, 1
{
	.reg .pred 	%p<40>;
	.reg .b16 	%rs<40>;
	.reg .b32 	%r<40>;
	.reg .f32 	%f<40>;
	.reg .b64 	%rd<40>;
	.reg .f64 	%fd<40>;

	ld.param.u64 	%rd1, [k_param_0];
	ld.param.u32 	%r1, [k_param_1];
	cvta.to.global.u64 	%rd1, %rd1;
	mov.u32 	%r2, %tid.x;
	mov.u32 	%r3, %ctaid.x;
	mov.u32 	%r4, %ntid.x;
	mad.lo.s32 	%r5, %r3, %r4, %r2;
	mul.wide.u32 	%rd3, %r5, 4;
	add.s64 	%rd2, %rd1, %rd3;
` + body + `
	ret;

}
`
}

const base = 0x7f0000001000

// run runs program k with this many blocks and threads on memory of words.
func run(t *testing.T, text string, blocks, threads int, number uint32, order Order, words ...uint32) ([]uint32,
	error) {
	t.Helper()
	m, err := Parse(text, Options{})
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, 4*len(words))
	for i, w := range words {
		binary.LittleEndian.PutUint32(data[4*i:], w)
	}
	_, err = m.Kernel("k").Run(Launch{
		Blocks: [3]int{blocks, 1, 1}, Threads: [3]int{threads, 1, 1}, Order: order,
		Memory: NewMemory(Block{base, data}, Block{base + 1<<20, make([]byte, 64)}),
		Parameters: [][]byte{binary.LittleEndian.AppendUint64(nil, base),
			binary.LittleEndian.AppendUint32(nil, number)},
	})
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(data[4*i:])
	}
	return words, err
}

// wants runs program k and compares memory.
func wants(t *testing.T, text string, blocks, threads int, number uint32, words []uint32, want ...uint32) {
	t.Helper()
	for _, order := range []Order{Forward, Backward, 5} {
		got, err := run(t, text, blocks, threads, number, order, slices.Clone(words)...)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("order %d: %v, %#x, want %#x", order, err, got, want)
		}
	}
}

func TestVectors(t *testing.T) {
	text := program("", `
	ld.global.nc.v2.u32 	{%r6, %r7}, [%rd1];
	ld.global.s8 	%r8, [%rd1+8];
	ld.global.u16 	%rs1, [%rd1+8];
	ld.global.s16 	%rd4, [%rd1+10];
	mov.b32 	%r9, {%rs1, %rs1};
	mov.b64 	%rd5, {%r7, %r6};
	{
	.reg .b32 %temp;
	mov.b64 	{%temp, %r10}, %rd5;
	}
	mov.b64 	{_, %r11}, %rd4;
	st.global.v4.b32 	[%rd1+16], {%r8, %r9, %r10, %r11};
	st.global.u8 	[%rd1+3], 7;
	st.global.f32 	[%rd1+4], 0f3F800000;
	st.global.u64 	[%rd1+8], %rd5;
`)
	wants(t, text, 1, 1, 0, []uint32{0x01020304, 5, 0x8000fffe, 0, 0, 0, 0, 0}, 0x07020304, 0x3f800000, 5, 0x01020304,
		0xfffffffe, 0xfffefffe, 0x01020304, 0xffffffff)
}

// Instructions whose last operands are constants.
func TestConstants(t *testing.T) {
	text := program("", `
	ld.global.v2.u32 	{%r6, %r7}, [%rd1];
	ld.global.u32 	%r8, [%rd1+8];
	lop3.b32 	%r9, %r6, %r7, %r8, 0xca;
	st.global.u32 	[%rd1+12], %r9;
	bfi.b32 	%r10, %r6, %r7, 8, 4;
	st.global.u32 	[%rd1+16], %r10;
	mov.b64 	%rd4, 0;
	bfi.b64 	%rd5, 5, %rd4, 32, 8;
	st.global.u64 	[%rd1+24], %rd5;
`)
	// 0xca selects the bits of the second operand where the first has ones, else those of the third.
	wants(t, text, 1, 1, 0, []uint32{0xff00ff0a, 0x12345678, 0x9abcdef0, 0, 0, 0, 9, 9}, 0xff00ff0a, 0x12345678,
		0x9abcdef0, 0x12bc56f8, 0x12345a78, 0, 0, 5)
	for _, line := range []string{"lop3.b32 	%r9, %r6, %r7, %r8;", "lop3.b32 	%r9, %r6, %r7, %r8, %r9;",
		"lop3.b64 	%rd4, %rd4, %rd4, %rd4, 1;", "bfi.b32 	%r9, %r6, %r7, %r8, 4;"} {
		if _, err := Parse(program("", line), Options{}); err == nil {
			t.Errorf("%s is known", line)
		}
	}
}

// The sum of a thread's numbers, with a loop, a guard and a predicate.
func TestBranches(t *testing.T) {
	text := program("", `
	mov.u32 	%r6, 0;
	setp.eq.s32 	%p1, %r2, 0;
	@%p1 bra 	$L__BB0_2;
$L__BB0_1:
	.pragma "nounroll";
	add.s32 	%r6, %r6, %r2;
	sub.s32 	%r2, %r2, 1;
	setp.ne.s32 	%p2, %r2, 0;
	@%p2 bra 	$L__BB0_1;
$L__BB0_2:
	@!%p1 add.s32 	%r6, %r6, %r1;
	selp.b32 	%r7, %r6, -1, !%p1;
	st.global.u32 	[%rd2], %r6;
`)
	if _, err := Parse(text, Options{}); err == nil || !strings.Contains(err.Error(), "!%p1") {
		t.Fatalf("a negated operand: %v", err)
	}
	text = strings.ReplaceAll(text, ", !%p1", ", %p1")
	wants(t, text, 2, 4, 100, make([]uint32, 8), 0, 101, 103, 106, 0, 101, 103, 106)
	for _, line := range []string{"frob.s32 	%r6, %r6;", "add.s32 	%r6, %r99x, 1;", "add.s32 	%r6;",
		"bra 	$L__BB0_9;", "ld.global.u32 	%r6, %rd1;", "ld.param.u64 	%rd1, [k_param_1];",
		"brx.idx 	%r6, $L;", "call.uni 	f;", "bar.sync 	1;", "mov.u32 	%r6, nobody;",
		"st.global.v4.b32 	[%rd1], {%r6, %r7};"} {
		if _, err := Parse(program("", line), Options{}); err == nil {
			t.Errorf("%s is known", line)
		}
	}
}

func TestModules(t *testing.T) {
	whole := program(cells, "")
	for name, text := range map[string]string{
		"no end":                         whole[:strings.LastIndex(whole, "}")],
		"shared memory without a length": strings.Replace(whole, "cells[1032]", "cells[]", 1),
		"shared memory asked for":        ".extern .shared .align 16 .b8 more[];\n" + whole,
		"a function":                     ".func f()\n{\nret;\n}\n" + whole,
		"no parameters":                  strings.ReplaceAll(strings.ReplaceAll(whole, "(", ""), ")", ""),
		"a parameter of no type":         strings.Replace(whole, ".param .u32 k", ".param .q k", 1),
		"registers of no type":           strings.Replace(whole, ".reg .f32", ".reg .q", 1),
	} {
		if _, err := Parse(text, Options{}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	m, err := Parse(".global .align 4 .b8 table[4] = {1, 2, 3, 4};\n"+strings.Replace(whole, "k_param_1\n",
		"k_param_1,\n\t.param .align 8 .b8 more[12]\n", 1), Options{})
	if err != nil || m.Kernel("nobody") != nil {
		t.Fatal(err)
	}
	k := m.Kernel("k")
	if len(k.params) != 3 || k.params[1].at != 8 || k.params[2].at != 16 || k.params[2].of != 12 || k.shared != 1048 ||
		k.Instructions() != 11 ||
		!strings.HasSuffix(k.Instruction(0), ": ld.param.u64 %rd1, [k_param_0]") {
		t.Errorf("%+v, %d bytes of shared memory, %d instructions, the first one %s", k.params, k.shared,
			k.Instructions(), k.Instruction(0))
	}
}

const reverse = `
	shl.b32 	%r6, %r2, 2;
	mov.u32 	%r7, cells;
	add.s32 	%r8, %r7, %r6;
	ld.global.u32 	%r9, [%rd2];
	st.shared.u32 	[%r8+4], %r9;
	bar.sync 	0;
	sub.s32 	%r10, %r4, %r2;
	sub.s32 	%r10, %r10, 1;
	mul.wide.u32 	%rd4, %r10, 4;
	mov.u64 	%rd5, cells;
	cvta.shared.u64 	%rd6, %rd5;
	add.s64 	%rd7, %rd6, %rd4;
	ld.u32 	%r11, [%rd7+4];
	st.global.u32 	[%rd2], %r11;
`

const cells = ".shared .align 4 .b8 before[6];\n.shared .align 16 .b8 cells[1032];\n"

func TestBarrier(t *testing.T) {
	in, want := make([]uint32, 512), make([]uint32, 512)
	for i := range in {
		in[i] = uint32(i)
		want[i] = uint32(i/256*256 + 255 - i%256)
	}
	wants(t, program(cells, reverse), 2, 256, 0, in, want...)
	// A barrier does not wait for ended threads.
	wants(t, program("", "setp.gt.u32 %p1, %r2, 1;\n@%p1 bra $end;\nbar.sync 0;\nst.global.u32 [%rd2], 1;\n$end:"), 1,
		4, 0, make([]uint32, 4), 1, 1, 0, 0)
}

func TestFaults(t *testing.T) {
	planted := func(old, new string) string { return program(cells, strings.Replace(reverse, old, new, 1)) }
	for _, x := range []struct{ name, text, want string }{
		{"a barrier that is missing", planted("bar.sync 	0;", ""),
			"no thread of the block has written|a race: .* was read by|a race: .* was written by"},
		{"a barrier of a warp in place of the block's", planted("bar.sync 	0;", "bar.warp.sync 	0xffffffff;"),
			"no thread of the block has written|a race: .* was read by|a race: .* was written by"},
		{"a barrier that is missing between two uses", program(cells, reverse+"\nst.shared.u32 [%r8+4], 0;"),
			"a race: .* since the last barrier"},
		{"shared memory that nobody wrote", planted("st.shared.u32 	[%r8+4], %r9;", ""),
			"no thread of the block has written"},
		{"past shared memory", planted("[%r8+4]", "[%r8+12]"), "of 1048 bytes of shared memory"},
		{"past memory", planted("[%rd2], %r11", "[%rd2+4], %r11"), "0 bytes past the end of 1024 bytes"},
		{"before memory", planted("[%rd2], %r11", "[%r2], %r11"), "before all memory"},
		{"not aligned", planted("[%rd2], %r11", "[%rd2+2], %r11"), "which is not a multiple of them"},
		{"a vector that is not aligned", planted("ld.global.u32 	%r9, [%rd2]",
			"ld.global.v2.u32 	{%r9, %r20}, [%rd2]"), "8 bytes at .* which is not a multiple"},
		{"division by zero", program("", "div.u32 %r6, %r2, %r1;"), "an integer division by zero"},
		{"a loop without end", program("", "$again:\nbra $again;"), "a loop without end"},
		{"a trap", program("", "trap;"), "a trap"},
		{"lanes that do not come", program("",
			"setp.eq.u32 %p1, %r2, 3;\n@%p1 bra $end;\nshfl.sync.idx.b32 %r6|%p2, %r2, 0, 31, 0xffffffff;\n$end:"),
			"lane 3 of mask 0xffffffff has ended"},
		{"lanes at a barrier", program("",
			"setp.eq.u32 %p1, %r2, 3;\n@%p1 bra $end;\nshfl.sync.idx.b32 %r6|%p2, %r2, 0, 31, 0xffffffff;\n$end: "+
				"bar.sync 0;"), "it waits for lanes that never arrive"},
		{"a lane without its bit", program("", "shfl.sync.idx.b32 %r6|%p2, %r2, 0, 31, 1;"), "not in its own mask"},
		{"from a lane outside", program("",
			"setp.lt.u32 %p1, %r2, 2;\n@!%p1 bra $end;\nshfl.sync.idx.b32 %r6|%p2, %r2, 5, 31, 3;\n$end:"),
			"lane 5, which does not participate"},
	} {
		_, err := run(t, x.text, 1, 256, 0, Forward, make([]uint32, 256)...)
		f := new(Fault)
		if !errors.As(err, &f) {
			t.Errorf("%s: %v", x.name, err)
			continue
		}
		if !regexp.MustCompile(x.want).MatchString(f.Why) || f.Kernel != "k" {
			t.Errorf("%s: %v", x.name, err)
		}
	}
}

// Threads of a warp may exchange data in shared memory across a warp barrier, and several may read.
func TestWarpBarrier(t *testing.T) {
	text := program(cells, `
	shl.b32 	%r6, %r2, 2;
	st.shared.u32 	[%r6+8], %r2;
	bar.warp.sync 	-1;
	xor.b32 	%r7, %r6, 4;
	ld.shared.u32 	%r8, [%r7+8];
	ld.shared.u32 	%r9, [%r6+8];
	bar.warp.sync 	-1;
	st.shared.u32 	[%r6+8], %r8;
	bar.sync 	0;
	ld.shared.u32 	%r8, [%r7+8];
	st.global.u32 	[%rd2], %r8;
`)
	want := make([]uint32, 64)
	for i := range want {
		want[i] = uint32(i)
	}
	wants(t, text, 1, 64, 0, make([]uint32, 64), want...)
}

func TestLocalMemory(t *testing.T) {
	text := program("", `
	.local .align 8 .b8 	depot[16];
	.reg .b64 	%SP;
	.reg .b64 	%SPL;
	mov.u64 	%SPL, depot;
	cvta.local.u64 	%SP, %SPL;
	st.local.u32 	[%SPL+8], %r2;
	ld.u32 	%r6, [%SP+8];
	st.global.u32 	[%rd2], %r6;
`)
	wants(t, text, 1, 3, 0, make([]uint32, 3), 0, 1, 2)
	_, err := run(t, strings.Replace(text, "[%SPL+8]", "[%SPL+16]", 1), 1, 1, 0, Forward, 0)
	if err == nil || !strings.Contains(err.Error(), "of 16 bytes of local memory") {
		t.Error(err)
	}
}

// Each lane's source, as the PTX ISA defines it.
func TestShuffles(t *testing.T) {
	for _, x := range []struct {
		op, b, c string
		source   func(lane int) (int, bool)
	}{
		{"down", "4", "31", func(l int) (int, bool) { return l + 4, l+4 < 32 }},
		{"down", "1", "0x181f", func(l int) (int, bool) { return l + 1, l%8 < 7 }}, // segments of 8
		{"up", "4", "0", func(l int) (int, bool) { return l - 4, l >= 4 }},
		{"up", "2", "0x1800", func(l int) (int, bool) { return l - 2, l%8 >= 2 }},
		{"bfly", "16", "31", func(l int) (int, bool) { return l ^ 16, true }},
		{"idx", "9", "31", func(int) (int, bool) { return 9, true }},
		{"idx", "3", "0x1c1f", func(l int) (int, bool) { return l/4*4 + 3, true }},
		{"idx", "9", "7", func(l int) (int, bool) { return 9, false }},
	} {
		text := program("", fmt.Sprintf(`
	add.s32 	%%r6, %%r2, 100;
	shfl.sync.%s.b32 	%%r7|%%p1, %%r6, %s, %s, -1;
	selp.b32 	%%r8, 1000, 0, %%p1;
	add.s32 	%%r9, %%r7, %%r8;
	st.global.u32 	[%%rd2], %%r9;
`, x.op, x.b, x.c))
		var want []uint32
		for l := range 64 {
			source, inside := x.source(l % 32)
			if !inside {
				source = l % 32
			}
			want = append(want, uint32(l/32*32+source+100))
			if inside {
				want[l] += 1000
			}
		}
		wants(t, text, 1, 64, 0, make([]uint32, 64), want...)
	}
}

// Participating lanes vote while others are elsewhere.
func TestVotes(t *testing.T) {
	text := program("", `
	setp.ge.u32 	%p1, %r2, 8;
	@%p1 bra 	$end;
	setp.lt.u32 	%p2, %r2, 3;
	vote.sync.ballot.b32 	%r6, %p2, 255;
	vote.sync.all.pred 	%p3, %p2, 255;
	vote.sync.any.pred 	%p4, %p2, 255;
	vote.sync.uni.pred 	%p5, %p2, 255;
	and.b32 	%r7, %r2, 3;
	match.any.sync.b32 	%r8, %r7, 255;
	selp.b32 	%r9, 1000, 0, %p3;
	selp.b32 	%r10, 2000, 0, %p4;
	selp.b32 	%r11, 4000, 0, %p5;
	add.s32 	%r6, %r6, %r9;
	add.s32 	%r6, %r6, %r10;
	add.s32 	%r6, %r6, %r11;
	shl.b32 	%r8, %r8, 16;
	add.s32 	%r6, %r6, %r8;
	st.global.u32 	[%rd2], %r6;
$end:
`)
	var want []uint32
	for l := range uint32(32) {
		w := uint32(0)
		if l < 8 {
			w = 7 + 2000 + 0x11<<(l%4)<<16
		}
		want = append(want, w)
	}
	wants(t, text, 1, 32, 0, make([]uint32, 32), want...)
}

func TestAtomics(t *testing.T) {
	for _, x := range []struct {
		op       string
		is, want uint32
	}{
		{"atom.global.add.u32 %r6, [%rd1], 3;", 5, 5 + 3*64}, {"atom.global.inc.u32 %r6, [%rd1], 9;", 0, 64 % 10},
		{"atom.global.dec.u32 %r6, [%rd1], 9;", 9, 5},
		{"atom.global.max.u32 %r6, [%rd1], %r5;", 5, 63}, {"atom.global.min.s32 %r6, [%rd1], -4;", 5, 0xfffffffc},
		{"atom.global.exch.b32 %r6, [%rd1], 8;", 5, 8},
		{"red.global.or.b32 [%rd1], 8;", 5, 13}, {"atom.global.cas.b32 %r6, [%rd1], 5, 6;", 5, 6},
		{"atom.global.cas.b32 %r6, [%rd1], 4, 6;", 5, 5},
		{"red.global.add.f32 [%rd1], 0f3F800000;", 0, 0x42800000},
		{"atom.acq_rel.gpu.global.and.b32 %r6, [%rd1], 12;", 13, 12},
	} {
		wants(t, program("", x.op), 2, 32, 0, []uint32{x.is}, x.want)
	}
	// In shared memory they are not a race, and each gets a different number.
	text := program(cells, `
	setp.ne.s32 	%p1, %r2, 0;
	@%p1 bra 	$go;
	st.shared.u32 	[cells], 0;
$go:
	bar.sync 	0;
	mov.u32 	%r7, cells;
	atom.shared.add.u32 	%r6, [%r7], 1;
	mul.wide.u32 	%rd4, %r6, 4;
	add.s64 	%rd5, %rd1, %rd4;
	st.global.u32 	[%rd5], %r6;
`)
	wants(t, text, 1, 4, 0, []uint32{9, 9, 9, 9}, 0, 1, 2, 3)
}

// Blocks run in the requested order.
func TestOrder(t *testing.T) {
	text := program("", "atom.global.add.u32 %r6, [%rd1], 1;\nmul.wide.u32 %rd4, %r5, 4;\nadd.s64 %rd5, %rd1, "+
		"%rd4;\nst.global.u32 [%rd5+4], %r6;")
	for order, want := range map[Order][]uint32{Forward: {4, 0, 1, 2, 3}, Backward: {4, 3, 2, 1, 0}} {
		if got, err := run(t, text, 2, 2, 0, order, make([]uint32, 5)...); err != nil || !slices.Equal(got, want) {
			t.Errorf("order %d: %v, %v", order, got, err)
		}
	}
	a, _ := run(t, text, 2, 2, 0, 12, make([]uint32, 5)...)
	b, _ := run(t, text, 2, 2, 0, 13, make([]uint32, 5)...)
	again, _ := run(t, text, 2, 2, 0, 12, make([]uint32, 5)...)
	if slices.Equal(a, b) || !slices.Equal(a, again) {
		t.Errorf("seeds 12, 13 and 12: %v, %v, %v", a, b, again)
	}
}

func TestSpecialRegisters(t *testing.T) {
	text := program("", `
	mov.u32 	%r6, %tid.y;
	mov.u32 	%r7, %ctaid.z;
	mov.u32 	%r8, %nctaid.z;
	mov.u32 	%r9, %ntid.y;
	mov.u32 	%r10, %laneid;
	mad.lo.u32 	%r11, %r7, %r9, %r6;
	mad.lo.u32 	%r11, %r11, %r4, %r2;
	mul.wide.u32 	%rd4, %r11, 4;
	add.s64 	%rd5, %rd1, %rd4;
	mad.lo.u32 	%r12, %r8, 100, %r10;
	st.global.u32 	[%rd5], %r12;
`)
	m, err := Parse(text, Options{})
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, 4*2*20*2)
	stats, err := m.Kernel("k").Run(Launch{Blocks: [3]int{1, 1, 2}, Threads: [3]int{20, 2, 1},
		Memory:     NewMemory(Block{base, data}),
		Parameters: [][]byte{binary.LittleEndian.AppendUint64(nil, base), {0, 0, 0, 0}}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 80 {
		if got, want := binary.LittleEndian.Uint32(data[4*i:]), uint32(200+i%40%32); got != want {
			t.Fatalf("thread %d: %d, want %d", i, got, want)
		}
	}
	if stats.Instructions != 80*uint64(m.Kernel("k").Instructions()-1) || stats.Ran[0] != 80 {
		t.Errorf("%d instructions, the first one %d times", stats.Instructions, stats.Ran[0])
	}
	if _, err := m.Kernel("k").Run(Launch{Blocks: [3]int{1, 1, 1}, Threads: [3]int{1, 1, 1},
		Parameters: [][]byte{make([]byte, 8)}}); err == nil {
		t.Error("it runs without its second parameter")
	}
}

// Instructions a second in a loop with a load.
func BenchmarkRun(b *testing.B) {
	m, err := Parse(program("", `
	mov.u32 	%r6, 0;
	mov.f32 	%f1, 0f00000000;
$again:
	ld.global.f32 	%f2, [%rd1];
	fma.rn.f32 	%f1, %f2, %f2, %f1;
	add.s32 	%r6, %r6, 1;
	setp.lt.s32 	%p1, %r6, %r1;
	@%p1 bra 	$again;
`), Options{})
	if err != nil {
		b.Fatal(err)
	}
	var n uint64
	for b.Loop() {
		stats, err := m.Kernel("k").Run(Launch{Blocks: [3]int{1, 1, 1}, Threads: [3]int{32, 1, 1},
			Memory: NewMemory(Block{base, make([]byte, 64)}),
			Parameters: [][]byte{binary.LittleEndian.AppendUint64(nil, base),
				binary.LittleEndian.AppendUint32(nil, 10000)}})
		if err != nil {
			b.Fatal(err)
		}
		n += stats.Instructions
	}
	b.ReportMetric(float64(n)/1e6/b.Elapsed().Seconds(), "million/s")
}
