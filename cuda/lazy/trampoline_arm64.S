//go:build gpu

// One entry a function: a branch through a slot, which first points at code that finds the function.

	.text
// find saves what a call may pass in registers, asks lazy_resolve for the function and branches to it. The index of
// the function is in x17.
find:
	.cfi_startproc
	stp x29, x30, [sp, #-224]!
	.cfi_def_cfa_offset 224
	.cfi_offset 29, -224
	.cfi_offset 30, -216
	mov x29, sp
	stp x0, x1, [sp, #16]
	stp x2, x3, [sp, #32]
	stp x4, x5, [sp, #48]
	stp x6, x7, [sp, #64]
	str x8, [sp, #80]
	stp q0, q1, [sp, #96]
	stp q2, q3, [sp, #128]
	stp q4, q5, [sp, #160]
	stp q6, q7, [sp, #192]
	mov x0, x17
	bl lazy_resolve
	mov x16, x0
	ldp q6, q7, [sp, #192]
	ldp q4, q5, [sp, #160]
	ldp q2, q3, [sp, #128]
	ldp q0, q1, [sp, #96]
	ldr x8, [sp, #80]
	ldp x6, x7, [sp, #64]
	ldp x4, x5, [sp, #48]
	ldp x2, x3, [sp, #32]
	ldp x0, x1, [sp, #16]
	ldp x29, x30, [sp], #224
	.cfi_restore 30
	.cfi_restore 29
	.cfi_def_cfa_offset 0
	br x16
	.cfi_endproc

	.set index, 0
	.macro entry name
	.globl \name
	.hidden \name
	.type \name, %function
\name:
	adrp x16, lazy_slots + 8*index
	ldr x16, [x16, :lo12:lazy_slots + 8*index]
	br x16
	.size \name, . - \name
0:	mov x17, #index
	b find
	.pushsection .data.rel.local, "aw"
	.xword 0b
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
	.section .note.GNU-stack, "", %progbits
