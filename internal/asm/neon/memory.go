package neon

import "fmt"

// moves are the instructions that move so many bytes of a register.
var moves = map[int]struct {
	golang      string
	load, store uint32 // with an index in a register
	letter      string
}{
	16: {"FMOVQ", 0x3ce06800, 0x3ca06800, "q"},
	8:  {"FMOVD", 0xfc606800, 0xfc206800, "d"},
	4:  {"FMOVS", 0xbc606800, 0xbc206800, "s"},
	2:  {"", 0x7c606800, 0x7c206800, "h"},
}

// LoadVec reads 16 bytes of memory, or the first 8, 4 or 2 and zeros. The offset is a multiple of bytes.
func (k *Func) LoadVec(bytes int, base GP, offset int) Vec {
	v := k.vec()
	k.LoadTo(v, bytes, base, offset)
	return v
}

// LoadTo is LoadVec into v.
func (k *Func) LoadTo(v Vec, bytes int, base GP, offset int) {
	m := k.move(bytes, offset)
	k.put(vecs(v), regs(base), func() string {
		if m == "" {
			return word(0x7d400000|uint32(offset/2)<<10|base.n()<<5|v.n(), "ldr h%d, [x%d, #%d]", v.n(), base.n(), offset)
		}
		return fmt.Sprintf("%s %d(%v), %s", m, offset, base, v.f())
	})
}

// StoreVec writes the first 16, 8, 4 or 2 bytes of v.
func (k *Func) StoreVec(bytes int, v Vec, base GP, offset int) {
	m := k.move(bytes, offset)
	k.put(nil, append(vecs(v), base.r), func() string {
		if m == "" {
			return word(0x7d000000|uint32(offset/2)<<10|base.n()<<5|v.n(), "str h%d, [x%d, #%d]", v.n(), base.n(), offset)
		}
		return fmt.Sprintf("%s %s, %d(%v)", m, v.f(), offset, base)
	})
}

func (k *Func) move(bytes, offset int) string {
	m, ok := moves[bytes]
	if !ok || offset < 0 || offset%bytes != 0 || offset/bytes > 4095 {
		panic(fmt.Sprintf("%s: %d bytes at offset %d", k.name, bytes, offset))
	}
	return m.golang
}

// LoadAt and StoreAt are LoadVec and StoreVec at the sum of two registers.
func (k *Func) LoadAt(bytes int, base, index GP) Vec {
	v := k.vec()
	m := moves[bytes]
	k.put(vecs(v), regs(base, index), func() string {
		return word(m.load|index.n()<<16|base.n()<<5|v.n(), "ldr %s%d, [x%d, x%d]", m.letter, v.n(), base.n(), index.n())
	})
	return v
}

func (k *Func) StoreAt(bytes int, v Vec, base, index GP) {
	m := moves[bytes]
	k.put(nil, append(vecs(v), base.r, index.r), func() string {
		return word(m.store|index.n()<<16|base.n()<<5|v.n(), "str %s%d, [x%d, x%d]", m.letter, v.n(), base.n(), index.n())
	})
}

// LoadTwo reads 32 bytes of memory.
func (k *Func) LoadTwo(base GP, offset int) (a, b Vec) {
	a, b = k.vec(), k.vec()
	k.put(vecs(a, b), regs(base), func() string { return fmt.Sprintf("FLDPQ %d(%v), (%s, %s)", offset, base, a.f(), b.f()) })
	return a, b
}

// StoreTwo writes them.
func (k *Func) StoreTwo(a, b Vec, base GP, offset int) {
	k.put(nil, append(vecs(a, b), base.r), func() string { return fmt.Sprintf("FSTPQ (%s, %s), %d(%v)", a.f(), b.f(), offset, base) })
}

// Repeated is a number in memory, in all lanes.
func (k *Func) Repeated(s Shape, base GP) Vec {
	v := k.vec()
	k.put(vecs(v), regs(base), func() string { return fmt.Sprintf("VLD1R (%v), [%v.%s]", base, v, s.golang()) })
	return v
}

// LoadLane reads lane i of v, and leaves the others; StoreLane writes it.
func (k *Func) LoadLane(s Shape, v Vec, i int, base GP) {
	k.put(vecs(v), append(vecs(v), base.r), func() string { return fmt.Sprintf("VLD1 (%v), %v.%s[%d]", base, v, upper(s), i) })
}

func (k *Func) StoreLane(s Shape, v Vec, i int, base GP) {
	k.put(nil, append(vecs(v), base.r), func() string { return fmt.Sprintf("VST1 %v.%s[%d], (%v)", v, upper(s), i, base) })
}

func upper(s Shape) string { return [...]string{"S", "D"}[s] }

// near are the loads with an offset that counts bytes.
var near = map[int]uint32{16: 0x3cc00000, 8: 0xfc400000, 4: 0xbc400000}

// LoadNear is LoadVec at any offset up to 255: models of some cores count an operation less for it.
func (k *Func) LoadNear(bytes int, base GP, offset int) Vec {
	if offset < 0 || offset > 255 {
		panic(fmt.Sprintf("%s: offset %d", k.name, offset))
	}
	v := k.vec()
	k.put(vecs(v), regs(base), func() string {
		return word(near[bytes]|uint32(offset)<<12|base.n()<<5|v.n(), "ldur %s%d, [x%d, #%d]", moves[bytes].letter, v.n(), base.n(), offset)
	})
	return v
}

// LoadNext is LoadVec at base, which is moved behind what it read.
func (k *Func) LoadNext(bytes int, base GP) Vec {
	v := k.vec()
	m := k.move(bytes, 0)
	k.put(append(vecs(v), base.r), regs(base), func() string { return fmt.Sprintf("%s.P %d(%v), %s", m, bytes, base, v.f()) })
	return v
}
