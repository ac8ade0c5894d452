package neon

import "fmt"

// put adds an instruction.
func (k *Func) put(writes, reads []*register, render func() string) {
	k.code = append(k.code, instruction{render: render, reads: reads, writes: writes})
}

func regs(gs ...GP) (list []*register) {
	for _, g := range gs {
		list = append(list, g.r)
	}
	return list
}

// Arg loads an argument; for slices, name_base is the elements and name_len their number.
func (k *Func) Arg(name string) GP { g := k.gp(); k.ArgTo(g, name); return g }

// ArgTo sets g to an argument.
func (k *Func) ArgTo(g GP, name string) {
	a := k.argument(name)
	op := map[int]string{8: "MOVD", 4: "MOVWU", 1: "MOVBU"}[a.size]
	k.put(regs(g), nil, func() string { return fmt.Sprintf("%s %s+%d(FP), %v", op, name, a.offset, g) })
}

func (k *Func) argument(name string) argument {
	a, ok := k.args[name]
	if !ok {
		panic(fmt.Sprintf("%s: no argument %s", k.name, name))
	}
	return a
}

// Scalar loads an argument that is a number into lane 0.
func (k *Func) Scalar(name string) Vec {
	a, v := k.argument(name), k.vec()
	op := map[int]string{8: "FMOVD", 4: "FMOVS"}[a.size]
	k.put(vecs(v), nil, func() string { return fmt.Sprintf("%s %s+%d(FP), %s", op, name, a.offset, v.f()) })
	return v
}

// Return sets the result and ends the kernel.
func (k *Func) Return(g GP) {
	a := k.argument("ret")
	op := map[int]string{8: "MOVD", 4: "MOVW"}[a.size]
	k.put(nil, regs(g), func() string { return fmt.Sprintf("%s %v, ret+%d(FP)", op, g, a.offset) })
	k.Ret()
}

// ReturnScalar is Return of lane 0.
func (k *Func) ReturnScalar(v Vec) {
	a := k.argument("ret")
	op := map[int]string{8: "FMOVD", 4: "FMOVS"}[a.size]
	k.put(nil, vecs(v), func() string { return fmt.Sprintf("%s %s, ret+%d(FP)", op, v.f(), a.offset) })
	k.Ret()
}

// Ret ends the kernel.
func (k *Func) Ret() { k.put(nil, nil, func() string { return "RET" }) }

// Memory is the address of the kernel's local memory.
func (k *Func) Memory() GP {
	g := k.gp()
	k.put(regs(g), nil, func() string { return fmt.Sprintf("MOVD $memory-%d(SP), %v", k.memory, g) })
	return g
}

// Address is the address of a symbol.
func (k *Func) Address(s Symbol, offset int) GP {
	g := k.gp()
	k.put(regs(g), nil, func() string { return fmt.Sprintf("MOVD $%s+%d(SB), %v", s, offset, g) })
	return g
}

// Int returns a register with a number, Copy one with the value of another; Set and SetInt do the same to an existing
// register.
func (k *Func) Int(x int) GP   { g := k.gp(); k.SetInt(g, x); return g }
func (k *Func) Copy(g GP) GP   { x := k.gp(); k.Set(x, g); return x }
func (k *Func) Set(g, from GP) { k.op("MOVD", g, from) }
func (k *Func) SetInt(g GP, x int) {
	k.put(regs(g), nil, func() string { return fmt.Sprintf("MOVD $%d, %v", x, g) })
}
func (k *Func) op(name string, g, a GP) {
	k.put(regs(g), regs(a), func() string { return fmt.Sprintf("%s %v, %v", name, a, g) })
}

// Load reads 8 bytes, LoadWord 4 and LoadHalf 2, extended with zeros.
func (k *Func) Load(base GP, offset int) GP     { return k.load("MOVD", base, offset) }
func (k *Func) LoadWord(base GP, offset int) GP { return k.load("MOVWU", base, offset) }
func (k *Func) LoadHalf(base GP, offset int) GP { return k.load("MOVHU", base, offset) }

// Store writes g.
func (k *Func) Store(g, base GP, offset int) {
	k.put(nil, regs(g, base), func() string { return fmt.Sprintf("MOVD %v, %d(%v)", g, offset, base) })
}

func (k *Func) load(op string, base GP, offset int) GP {
	g := k.gp()
	k.put(regs(g), regs(base), func() string { return fmt.Sprintf("%s %d(%v), %v", op, offset, base, g) })
	return g
}

func (k *Func) three(name string, g, a, b GP) {
	k.put(regs(g), regs(a, b), func() string { return fmt.Sprintf("%s %v, %v, %v", name, b, a, g) })
}

func (k *Func) immediate(name string, g, a GP, x int) {
	k.put(regs(g), regs(a), func() string { return fmt.Sprintf("%s $%d, %v, %v", name, x, a, g) })
}

// Add sets g to a + b, Sub to a − b, Mul to a · b, AddI to a + x, AddShift to a + b·2ⁿ, Shift to a·2ⁿ, ShiftRight to
// a/2ⁿ, And to a & x.
func (k *Func) Add(g, a, b GP)            { k.three("ADD", g, a, b) }
func (k *Func) Sub(g, a, b GP)            { k.three("SUB", g, a, b) }
func (k *Func) Mul(g, a, b GP)            { k.three("MUL", g, a, b) }
func (k *Func) AddI(g, a GP, x int)       { k.immediate("ADD", g, a, x) }
func (k *Func) Shift(g, a GP, n int)      { k.immediate("LSL", g, a, n) }
func (k *Func) ShiftRight(g, a GP, n int) { k.immediate("LSR", g, a, n) }
func (k *Func) And(g, a GP, x int)        { k.immediate("AND", g, a, x) }
func (k *Func) AddShift(g, a, b GP, n int) {
	k.put(regs(g), regs(a, b), func() string { return fmt.Sprintf("ADD %v<<%d, %v, %v", b, n, a, g) })
}

// SubsI sets g to a − x, and the flags for a branch that compares the difference with 0.
func (k *Func) SubsI(g, a GP, x int) { k.immediate("SUBS", g, a, x) }

// AddsI is AddI that sets the flags likewise.
func (k *Func) AddsI(g, a GP, x int) { k.immediate("ADDS", g, a, x) }

// Compare compares a with b for a branch or a choice, CompareI with x.
func (k *Func) Compare(a, b GP) {
	k.put(nil, regs(a, b), func() string { return fmt.Sprintf("CMP %v, %v", b, a) })
}
func (k *Func) CompareI(a GP, x int) {
	k.put(nil, regs(a), func() string { return fmt.Sprintf("CMP $%d, %v", x, a) })
}

// Choose sets g to a if the condition holds, otherwise to b.
func (k *Func) Choose(condition string, g, a, b GP) {
	k.put(regs(g), regs(a, b), func() string { return fmt.Sprintf("CSEL %s, %v, %v, %v", condition, a, b, g) })
}

// Branch jumps if the condition holds: EQ, NE, LT, LE, GT, GE, or none for always.
func (k *Func) Branch(condition, label string) {
	op := "B"
	if condition != "" {
		op += condition
	}
	k.code = append(k.code, instruction{target: label, render: func() string { return op + " " + label }})
}

// IfZero and IfNot jump if g is 0 and if it is not, IfNoBit if bit n is not set.
func (k *Func) IfZero(g GP, label string)         { k.test("CBZ", g, label) }
func (k *Func) IfNot(g GP, label string)          { k.test("CBNZ", g, label) }
func (k *Func) IfNoBit(n int, g GP, label string) { k.test(fmt.Sprintf("TBZ $%d,", n), g, label) }
func (k *Func) test(op string, g GP, label string) {
	k.code = append(k.code, instruction{target: label, reads: regs(g),
		render: func() string { return fmt.Sprintf("%s %v, %s", op, g, label) }})
}

// Turns runs body once for each whole step in left, which counts down to the remainder. Labels begin with the name.
func (k *Func) Turns(name string, left GP, step int, body func()) {
	k.SubsI(left, left, step)
	k.Branch("LT", name+"End")
	k.Label(name)
	body()
	k.SubsI(left, left, step)
	k.Branch("GE", name)
	k.Label(name + "End")
	k.AddI(left, left, step)
}

// Fetch prefetches memory at an address.
func (k *Func) Fetch(base GP, offset int) {
	k.put(nil, regs(base), func() string { return fmt.Sprintf("PRFM %d(%v), PLDL1KEEP", offset, base) })
}

// FetchFar prefetches memory at an address into the second level.
func (k *Func) FetchFar(base GP) {
	k.put(nil, regs(base), func() string { return fmt.Sprintf("PRFM (%v), PLDL2KEEP", base) })
}

// FetchAt is Fetch at the sum of two.
func (k *Func) FetchAt(base, index GP) {
	k.put(nil, regs(base, index), func() string {
		return word(0xf8a06800|index.n()<<16|base.n()<<5, "prfm pldl1keep, [x%d, x%d]", base.n(), index.n())
	})
}

// word is an instruction without a name in Go's assembler.
func word(code uint32, manual string, args ...any) string {
	return fmt.Sprintf("WORD $%#08x // %s", code, fmt.Sprintf(manual, args...))
}
