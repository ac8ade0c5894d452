//go:build gpu

// One entry a function: a jump through a slot, which first points at code that finds the function.

	.text
// find saves what a call may pass in registers, asks lazy_resolve for the function and jumps to it. The index of the
// function is on the stack, above it the return address of the call.
find:
	.cfi_startproc
	.cfi_def_cfa_offset 16
	push %rdi
	push %rsi
	push %rdx
	push %rcx
	push %r8
	push %r9
	push %rax
	.cfi_def_cfa_offset 72
	sub $136, %rsp
	.cfi_def_cfa_offset 208
	movups %xmm0, 0(%rsp)
	movups %xmm1, 16(%rsp)
	movups %xmm2, 32(%rsp)
	movups %xmm3, 48(%rsp)
	movups %xmm4, 64(%rsp)
	movups %xmm5, 80(%rsp)
	movups %xmm6, 96(%rsp)
	movups %xmm7, 112(%rsp)
	mov 192(%rsp), %rdi
	call lazy_resolve
	mov %rax, %r11
	movups 0(%rsp), %xmm0
	movups 16(%rsp), %xmm1
	movups 32(%rsp), %xmm2
	movups 48(%rsp), %xmm3
	movups 64(%rsp), %xmm4
	movups 80(%rsp), %xmm5
	movups 96(%rsp), %xmm6
	movups 112(%rsp), %xmm7
	add $136, %rsp
	.cfi_def_cfa_offset 72
	pop %rax
	pop %r9
	pop %r8
	pop %rcx
	pop %rdx
	pop %rsi
	pop %rdi
	.cfi_def_cfa_offset 16
	add $8, %rsp
	.cfi_def_cfa_offset 8
	jmp *%r11
	.cfi_endproc

	.set index, 0
	.macro entry name
	.globl \name
	.hidden \name
	.type \name, @function
\name:
	jmp *(lazy_slots + 8*index)(%rip)
	.size \name, . - \name
0:	push $index
	jmp find
	.pushsection .data.rel.local, "aw"
	.quad 0b
	.popsection
	.set index, index + 1
	.endm

	.section .data.rel.local, "aw"
	.p2align 3
	.globl lazy_slots
	.hidden lazy_slots
lazy_slots:
	.text
#define F(library, name) entry name;
#include "symbols.h"
	.section .note.GNU-stack, "", @progbits
