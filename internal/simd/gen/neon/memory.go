package neon

import "fmt"

// moves maps a number of bytes to the instruction that moves that part of a register, and to the register's letter in
// the manual.
var moves = map[int]struct{ golang, letter string }{16: {"FMOVQ", "q"}, 8: {"FMOVD", "d"}, 4: {"FMOVS", "s"}}

// LoadVec reads 16 bytes of memory, or 8 or 4 bytes followed by zeros. The offset is a multiple of bytes.
func (k *Func) LoadVec(bytes int, base GP, offset int) Vec {
	v := k.vec()
	k.LoadTo(v, bytes, base, offset)
	return v
}

// LoadTo is LoadVec into v.
func (k *Func) LoadTo(v Vec, bytes int, base GP, offset int) {
	m := k.move(bytes, offset)
	k.put(vecs(v), regs(base), func() string { return fmt.Sprintf("%s %d(%v), %s", m, offset, base, v.f()) })
}

// StoreVec writes the first 16, 8 or 4 bytes of v.
func (k *Func) StoreVec(bytes int, v Vec, base GP, offset int) {
	m := k.move(bytes, offset)
	k.put(nil, append(vecs(v), base.r), func() string { return fmt.Sprintf("%s %s, %d(%v)", m, v.f(), offset, base) })
}

func (k *Func) move(bytes, offset int) string {
	m, ok := moves[bytes]
	if !ok || offset < 0 || offset%bytes != 0 || offset/bytes > 4095 {
		panic(fmt.Sprintf("%s: %d bytes at offset %d", k.name, bytes, offset))
	}
	return m.golang
}

// LoadShort reads 2 bytes of memory, followed by zeros; StoreShort writes the first 2 bytes of v.
func (k *Func) LoadShort(base GP) Vec {
	v := k.vec()
	k.put(vecs(v), regs(base), func() string { return short("ldr", 0x7d400000, v, base) })
	return v
}

func (k *Func) StoreShort(v Vec, base GP) {
	k.put(nil, append(vecs(v), base.r), func() string { return short("str", 0x7d000000, v, base) })
}

func short(name string, code uint32, v Vec, base GP) string {
	return word(code|base.n()<<5|v.n(), "%s h%d, [x%d]", name, v.n(), base.n())
}

// LoadTwo reads 32 bytes of memory. The offset is a multiple of 16, up to 1008.
func (k *Func) LoadTwo(base GP, offset int) (a, b Vec) {
	k.two(offset)
	a, b = k.vec(), k.vec()
	k.put(vecs(a, b), regs(base), func() string {
		return fmt.Sprintf("FLDPQ %d(%v), (%s, %s)", offset, base, a.f(),
			b.f())
	})
	return a, b
}

// StoreTwo writes a and b to 32 bytes of memory. The offset is a multiple of 16, up to 1008.
func (k *Func) StoreTwo(a, b Vec, base GP, offset int) {
	k.two(offset)
	k.put(nil, append(vecs(a, b), base.r), func() string {
		return fmt.Sprintf("FSTPQ (%s, %s), %d(%v)", a.f(), b.f(),
			offset, base)
	})
}

func (k *Func) two(offset int) {
	if offset < 0 || offset%Bytes != 0 || offset/Bytes > 63 {
		panic(fmt.Sprintf("%s: two registers at offset %d", k.name, offset))
	}
}

// LoadLane reads lane i of v and keeps the others; StoreLane writes it.
func (k *Func) LoadLane(s Shape, v Vec, i int, base GP) {
	k.put(vecs(v), append(vecs(v), base.r), func() string {
		return fmt.Sprintf("VLD1 (%v), %v.%s[%d]", base, v, upper(s),
			i)
	})
}

func (k *Func) StoreLane(s Shape, v Vec, i int, base GP) {
	k.put(nil, append(vecs(v), base.r), func() string { return fmt.Sprintf("VST1 %v.%s[%d], (%v)", v, upper(s), i, base) })
}

func upper(s Shape) string { return [...]string{"S", "D"}[s] }

// near are the loads with an offset in bytes.
var near = map[int]uint32{16: 0x3cc00000, 8: 0xfc400000, 4: 0xbc400000}

// LoadNear is LoadVec at any offset up to 255: models of some cores count one operation less for it.
func (k *Func) LoadNear(bytes int, base GP, offset int) Vec {
	if offset < 0 || offset > 255 {
		panic(fmt.Sprintf("%s: offset %d", k.name, offset))
	}
	v := k.vec()
	k.put(vecs(v), regs(base), func() string {
		return word(near[bytes]|uint32(offset)<<12|base.n()<<5|v.n(), "ldur %s%d, [x%d, #%d]", moves[bytes].letter, v.n(),
			base.n(), offset)
	})
	return v
}

// LoadNext is LoadVec at base, and moves base behind the bytes that it read.
func (k *Func) LoadNext(bytes int, base GP) Vec {
	v := k.vec()
	m := k.move(bytes, 0)
	k.put(append(vecs(v), base.r), regs(base), func() string {
		return fmt.Sprintf("%s.P %d(%v), %s", m, bytes, base,
			v.f())
	})
	return v
}
