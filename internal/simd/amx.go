package simd

import (
	"errors"
	"fmt"
)

// errNoAMX: the processor lacks AMX, as opposed to AMX that the operating system refuses.
var errNoAMX = errors.New("this processor or build has no AMX")

// tileState are the bits of XCR0 for the configuration and the contents of tiles.
const tileState = 1<<17 | 1<<18

// amx tells why AMX cannot be used, or returns nil: by the processor, by XCR0, the registers that the operating system
// saves, and by the request for AMX's registers.
func amx(has bool, xcr0 func() uint32, request func() error) error {
	if !has {
		return errNoAMX
	}
	if xcr0()&tileState != tileState {
		return errors.New("the operating system does not enable AMX")
	}
	if err := request(); err != nil {
		return fmt.Errorf("the operating system does not permit AMX: %w", err)
	}
	return nil
}

// LacksAMX is nil if the kernels may use AMX, and otherwise the reason why they may not.
func LacksAMX() error { return own.lacks }

// Refused is the reason why the operating system does not let the kernels use the processor's AMX, or nil.
func Refused() error {
	if own.lacks == errNoAMX {
		return nil
	}
	return own.lacks
}

// Summary names the instructions of the default level, as "avx512 and amx", with the products that run on AMX. It adds
// why AMX is refused, if it is.
func Summary() string { return own.summary(standard) }

func (p processor) summary(l Level) string {
	s := l.Vectors().String()
	if l.BFloat16() {
		s += " and " + l.String()
	}
	if l == AMX {
		s += " (bfloat16, and float32 in parts)"
	}
	if p.lacks != nil && p.lacks != errNoAMX {
		s += "; " + p.lacks.Error()
	}
	return s
}
