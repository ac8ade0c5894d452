package neon

import (
	"bytes"
	"fmt"
	"slices"
	"sort"
)

// register is a virtual register.
type register struct {
	vector bool
	number int // of the physical register

	first, last int // the first instruction that writes it, the last that uses it
	used        bool
}

// Vec is a register of 128 bits, GP one of 64 bits for addresses and integers.
type (
	Vec struct{ r *register }
	GP  struct{ r *register }
)

// instruction is a line of assembly: text with verbs for its operands, a label, or a jump to a label.
type instruction struct {
	label  string
	target string
	render func() string
	reads  []*register
	writes []*register
}

// physical are the registers that kernels may use. R16 to R18 and those from R26 on are reserved.
var (
	general = []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 19, 20, 21, 22, 23, 24, 25}
	vectors = []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27,
		28, 29, 30, 31}
)

func (k *Func) vec() Vec { return Vec{k.register(true)} }
func (k *Func) gp() GP   { return GP{k.register(false)} }

func (k *Func) register(vector bool) *register {
	r := &register{vector: vector, number: -1, first: -1, last: -1}
	k.regs = append(k.regs, r)
	return r
}

// intervals finds the range of instructions over which each register holds its value. A register that holds a value at
// the start of a loop keeps it throughout the loop. intervals cannot follow a value from one turn of a loop to the next
// if a jump skips the write: it panics.
func (k *Func) intervals() {
	labels := make(map[string]int)
	for i, c := range k.code {
		if c.label != "" {
			if _, ok := labels[c.label]; ok {
				panic(fmt.Sprintf("%s: two labels %s", k.name, c.label))
			}
			labels[c.label] = i
		}
		for _, r := range c.reads {
			if r.first < 0 {
				panic(fmt.Sprintf("%s: instruction %d reads a register that nothing wrote", k.name, i))
			}
			r.last = i
		}
		for _, r := range c.writes {
			if r.first < 0 {
				r.first = i
			}
			r.last = max(r.last, i)
		}
	}
	type loop struct{ from, to int }
	var loops []loop
	for i, c := range k.code {
		if c.target == "" {
			continue
		}
		at, ok := labels[c.target]
		if !ok {
			panic(fmt.Sprintf("%s: no label %s", k.name, c.target))
		}
		if at < i {
			loops = append(loops, loop{at, i})
			continue
		}
		for _, r := range k.regs {
			if i < r.first && r.first < at && at < r.last {
				panic(fmt.Sprintf("%s: instruction %d jumps over %d, the first write of a register that %d reads",
					k.name, i, r.first, r.last))
			}
		}
	}
	for changed := true; changed; {
		changed = false
		for _, r := range k.regs {
			for _, l := range loops {
				if r.first >= 0 && r.first < l.from && r.last >= l.from && r.last < l.to {
					r.last, changed = l.to, true
				}
			}
		}
	}
}

// allocate assigns physical registers in the order in which virtual ones are first written. An instruction may write to
// the register of an operand that it reads for the last time.
func (k *Func) allocate() {
	k.intervals()
	order := slices.DeleteFunc(slices.Clone(k.regs), func(r *register) bool { return r.first < 0 })
	sort.SliceStable(order, func(i, j int) bool { return order[i].first < order[j].first })
	for _, kind := range []bool{false, true} {
		free := slices.Clone(general)
		if kind {
			free = slices.Clone(vectors)
		}
		var live []*register
		for _, r := range order {
			if r.vector != kind {
				continue
			}
			live = slices.DeleteFunc(live, func(o *register) bool {
				done := o.last <= r.first && !(o.last == r.first && slices.Contains(k.code[r.first].writes, o))
				if done {
					free = append(free, o.number) // the one free for longest is at the front
				}
				return done
			})
			if len(free) == 0 {
				panic(fmt.Sprintf("%s: instruction %d needs one register too many", k.name, r.first))
			}
			r.number, free = free[0], free[1:]
			live = append(live, r)
		}
	}
}

// write writes the code.
func (k *Func) write(b *bytes.Buffer) {
	k.allocate()
	for _, c := range k.code {
		switch {
		case c.label != "":
			fmt.Fprintf(b, "\n%s:\n", c.label)
		default:
			fmt.Fprintf(b, "\t%s\n", c.render())
		}
	}
}

func (v Vec) n() uint32      { return uint32(v.r.number) }
func (g GP) n() uint32       { return uint32(g.r.number) }
func (g GP) String() string  { return fmt.Sprintf("R%d", g.r.number) }
func (v Vec) String() string { return fmt.Sprintf("V%d", v.r.number) }
func (v Vec) f() string      { return fmt.Sprintf("F%d", v.r.number) }
