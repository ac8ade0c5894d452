//go:build !purego

#include "textflag.h"

// func intel() bool
TEXT ·intel(SB), NOSPLIT, $0-1
	XORL  AX, AX
	CPUID
	CMPL  BX, $0x756e6547 // Genu
	SETEQ ret+0(FP)
	RET
