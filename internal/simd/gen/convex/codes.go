package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The layout of codes in blocks, as package kern defines it.
const (
	codeBlock  = 32
	codeWords  = 4 // codes in a lane
	codeLanes  = codeBlock / codeWords
	codeOffset = 1 << 15
)

// column is the first column, in its step, of unit u.
func (e element) column(s isa, u int) int {
	if !e.coded() {
		return u * s.Lanes
	}
	return u%codeWords*codeLanes + u/codeWords*s.Lanes
}

// A reader loads the elements of rows as float64s.
type reader struct {
	isa
	element
	x           *rows
	magic, zero [codeWords - 1]Op                // of codes, by word: see decode
	others      [codeWords - 1]reg.OpmaskVirtual // all words of a vector except one of each lane
}

// exponents are those of the powers of two whose mantissas have their lowest integer bit at bit 0 of a word.
var exponents = [codeWords - 1]int{52, 36, 20}

func (s isa) reader(e element, x *rows) *reader {
	k := &reader{isa: s, element: e, x: x}
	if !e.coded() {
		return k
	}
	for i, exponent := range exponents {
		power, name := math.Ldexp(1, exponent), string(rune('0'+i))
		magic, zero := s.Number("magic"+name, power), s.Number("zero"+name, power+codeOffset)
		if !s.Masks { // too few registers
			k.magic[i], k.zero[i] = magic, zero
			continue
		}
		k.magic[i], k.zero[i] = s.Copy(magic), s.Copy(zero)
		all := GP32()
		MOVL(U32(^(0x11111111<<i)&math.MaxUint32), all)
		k.others[i] = K()
		KMOVD(all, k.others[i])
	}
	return k
}

// columns returns the function that loads unit u of row r at the current columns. Callers request the units of a row in
// order.
func (k *reader) columns(together int, m *mask) func(r, u int) reg.VecVirtual {
	if !k.coded() {
		return func(r, u int) reg.VecVirtual { return k.Load(k.x.row(r, u*k.Bytes()), m) }
	}
	raw := make([]reg.VecVirtual, together)
	return func(r, u int) reg.VecVirtual {
		word := u % codeWords
		if word == 0 {
			raw[r] = k.Load(k.x.row(r, u/codeWords*k.Bytes()), nil)
		}
		return k.decode(raw[r], word)
	}
}

// decode converts the codes in one word of each lane. It puts a code into that word of a large power of two, which adds
// the code to the number; subtracting the power is exact. The highest word holds the exponent, so its code moves to the
// lowest place.
func (k *reader) decode(raw reg.VecVirtual, word int) reg.VecVirtual {
	x := k.Vector()
	switch {
	case word == codeWords-1:
		VPSRLQ(Imm(48), raw, x)
		word = 0
		if k.Masks {
			VPORQ(k.magic[0], x, x)
		} else {
			VPOR(k.magic[0], x, x)
		}
	case k.Masks:
		VMOVDQA64(raw, x)
		VMOVDQU16(k.magic[word], k.others[word], x)
	default:
		VPBLENDW(Imm(uint64(^(0x11<<word)&0xff)), k.magic[word], raw, x)
	}
	VSUBPD(k.zero[word], x, x)
	return x
}
