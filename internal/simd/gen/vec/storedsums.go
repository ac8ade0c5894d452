package main

import (
	"fmt"
	"slices"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// storedColumns is a kernel that sums down the columns of matrices. Most are stored as bfloat16, with rows stride
// elements apart; the one in made, if any, is float32, with rows step elements apart. Addresses of sums and of the row
// of parameters are loaded where they are used, for want of registers.
type storedColumns struct {
	columns
	made         string
	atMade, read reg.GPVirtual // read: the place in stored matrices to prefetch
}

func (k *storedColumns) in(name string) reg.VecVirtual {
	if name == k.made {
		return k.Load(Mem{Base: k.base[name], Index: k.atMade, Scale: 1, Disp: k.unit * k.Bytes()}, k.mask)
	}
	disp := k.unit * k.Bytes() / 2
	if k.mask == nil && disp%line == 0 {
		PREFETCHT0(Mem{Base: k.base[name], Index: k.read, Scale: 1, Disp: disp})
	}
	return k.LoadStored(k.place(name), k.mask)
}

func (k *storedColumns) place(name string) Mem {
	return Mem{Base: k.base[name], Index: k.at, Scale: 1, Disp: k.unit * k.Bytes() / 2}
}

func (k *storedColumns) out(name string, x reg.VecVirtual) { k.StoreRounded(x, k.place(name), k.mask) }

// eachTotal calls f for the sums of the current columns.
func (k *storedColumns) eachTotal(totals []string, vectors int, f func(name string)) {
	for _, t := range totals {
		k.base[t] = Load(Param(t).Base(), GP64())
		for k.unit = range vectors {
			f(t)
		}
	}
}

// storedSums writes those kernels: where all matrices are stored, and, with the ending Made, where the last source is
// float32.
func storedSums(s isa) {
	for _, g := range columnSums[reg.VecVirtual, [2]reg.VecVirtual]() {
		body := func(k *storedColumns, rows []reg.VecVirtual) { g.body(k, append(rows, nil)[0]) }
		s.storedColumns(g.name+storedWay, g.sums, g.matrices, g.row, "", body)
		if slices.Contains(strings.Fields(g.matrices), "from") {
			s.storedColumns(g.name+"Made", g.sums, g.matrices, g.row, "from", body)
		}
	}
	for _, v := range []struct {
		name, matrices string
		add, relu      bool
	}{
		{"affineMade", "dst x", false, false}, {"affineReLUMade", "dst x", false, true},
		{"affineAddMade", "dst other x", true, false}, {"affineAddReLUMade", "dst other x", true, true},
	} {
		s.storedColumns(v.name, "", v.matrices, "gain bias", "x", func(k *storedColumns, rows []reg.VecVirtual) {
			x := k.add(k.mul(k.in("x"), rows[0]), rows[1])
			if v.add {
				x = k.add(x, k.in("other"))
			}
			if v.relu {
				x = k.Positive(x, k.Zero())
			}
			k.out("dst", x)
		})
	}
	s.storedColumns("momentsMade", "sum squares", "dst x", "", "x", func(k *storedColumns, _ []reg.VecVirtual) {
		x := k.in("x")
		k.out("dst", x)
		d := k.doubles(x)
		k.accumulate("sum", d)
		k.multiply("squares", d, d)
	})
}

// storedColumns generates a kernel with the given sums and matrices, and rows of parameters beside them.
func (s isa) storedColumns(name, sums, matrices, rows, made string,
	body func(k *storedColumns, rows []reg.VecVirtual)) {
	k := &storedColumns{made: made}
	k.columns = columns{isa: s, base: make(map[string]reg.Register), tally: newTally()}
	totals, names, params := strings.Fields(sums), strings.Fields(matrices), strings.Fields(rows)
	stored := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == made })
	arguments := strings.Join(stored, ", ") + " []uint16, "
	if len(totals) > 0 {
		arguments = strings.Join(totals, ", ") + " []float64, " + arguments
	}
	floats := params
	if made != "" {
		floats = append([]string{made}, params...)
	}
	if len(floats) > 0 {
		arguments += strings.Join(floats, ", ") + " []float32, "
	}
	TEXT(name+s.Suffix, NOSPLIT, fmt.Sprintf("func(%swidth, stride, step, rows int)", arguments))
	Pragma("noescape")
	for _, n := range names {
		k.base[n] = Load(Param(n).Base(), GP64())
	}
	n := Load(Param("width"), GP64())
	k.column, k.at, k.read, k.atMade = GP64(), GP64(), GP64(), GP64()
	XORQ(k.column, k.column)
	left := GP64()
	// apart adds a distance in elements to places, in bytes.
	apart := func(name string, size uint8, places ...reg.GPVirtual) {
		distance := Load(Param(name), GP64())
		for _, p := range places {
			LEAQ(Mem{Base: p, Index: distance, Scale: size}, p)
		}
	}
	block := func(label string, vectors int) {
		for _, t := range totals {
			k.sums[t] = make([][2]reg.VecVirtual, vectors)
		}
		k.eachTotal(totals, vectors, k.fetch)
		side := make([][]reg.VecVirtual, vectors)
		for _, p := range params {
			base := Load(Param(p).Base(), GP64())
			for k.unit = range vectors {
				x := k.Load(Mem{Base: base, Index: k.column, Scale: 1, Disp: k.unit * k.Bytes()}, k.mask)
				side[k.unit] = append(side[k.unit], x)
			}
		}
		MOVQ(k.column, k.atMade)
		MOVQ(k.column, k.at)
		SHRQ(Imm(1), k.at)
		Load(Param("rows"), left)
		if made != "" { // a block of a product: the next columns of the same rows
			Load(Param("width"), k.read)
		} else { // the same columns, as many rows further down
			Load(Param("stride"), k.read)
			IMULQ(left, k.read)
		}
		LEAQ(Mem{Base: k.at, Index: k.read, Scale: 2}, k.read)
		Label(label)
		for k.unit = range vectors {
			body(k, side[k.unit])
		}
		apart("stride", 2, k.at, k.read)
		if made != "" {
			apart("step", 4, k.atMade)
		}
		DECQ(left)
		JNZ(LabelRef(label))
		k.eachTotal(totals, vectors, k.leave)
		ADDQ(U32(uint32(vectors*s.Bytes())), k.column)
		SUBQ(Imm(uint64(vectors*s.Lanes)), n)
	}
	for _, vectors := range []int{4, 2} {
		SUBQ(Imm(uint64(vectors*s.Lanes)), n)
		JL(LabelRef(fmt.Sprintf("rest%d", vectors)))
		Label(fmt.Sprintf("whole%d", vectors))
		block(fmt.Sprintf("row%d", vectors), vectors)
		JGE(LabelRef(fmt.Sprintf("whole%d", vectors)))
		Label(fmt.Sprintf("rest%d", vectors))
		ADDQ(Imm(uint64(vectors*s.Lanes)), n)
		JLE(LabelRef("done"))
	}
	Label("part")
	k.mask = s.First(n.(reg.GPVirtual))
	block("partRow", 1)
	JG(LabelRef("part"))
	Label("done")
	VZEROUPPER()
	RET()
}
