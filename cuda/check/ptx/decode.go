package ptx

import (
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// kind is an instruction's action other than arithmetic.
type kind uint8

const (
	kindALU kind = iota
	kindBranch
	kindExit
	kindParam // reads a parameter
	kindLoad
	kindStore
	kindAtomic
	kindPack   // merges a vector into one register
	kindUnpack // splits a register into a vector
	kindBarrier
	kindWarp // lanes wait for each other and exchange values
	kindNothing
	kindTrap
)

type space uint8

const (
	generic space = iota
	global
	shared
	local
)

// function is arithmetic: registers hold values as unsigned numbers, zero above their width.
type function func(a, b, c uint64) uint64

// An instr is an instruction; its operands are slots of the thread's registers.
type instr struct {
	fn           function
	kind         kind
	space        space
	bytes        uint8 // of an element in memory or of a vector
	signed       bool  // the loaded value is signed
	not          bool  // the guard must be false
	guard        int32 // slot, -1 without
	dst, a, b, c int32
	target       int32  // instruction
	mask         uint64 // of the destination's bits
	offset       uint64
	list         []int32 // slots of a vector; -1 drops an element
	exchange     exchange
}

// Slots of the special registers. Those of constants and of the kernel's own registers follow.
const (
	slotTid      = 0
	slotNtid     = 3
	slotCtaid    = 6
	slotNctaid   = 9
	slotLane     = 12
	slotWarp     = 13
	specialSlots = 14
)

var specials = map[string]int{
	"%tid.x": slotTid, "%tid.y": slotTid + 1, "%tid.z": slotTid + 2, "%ntid.x": slotNtid, "%ntid.y": slotNtid + 1,
	"%ntid.z":  slotNtid + 2,
	"%ctaid.x": slotCtaid, "%ctaid.y": slotCtaid + 1, "%ctaid.z": slotCtaid + 2, "%nctaid.x": slotNctaid,
	"%nctaid.y": slotNctaid + 1,
	"%nctaid.z": slotNctaid + 2, "%laneid": slotLane, "%warpid": slotWarp,
}

// A decoder builds a kernel from statements. Constants get slots from -2 downwards until their number is known.
type decoder struct {
	options       Options
	shared, local variables
	params        map[string]param
	slots         map[string]int // of registers
	widths        map[string]int // bytes of registers, by name without the number
	labels        map[string]int
	fixes         map[int]string // target labels of branches
	consts        []uint64
	constSlots    map[uint64]int
	grain         int
	k             *Kernel
}

func (d *decoder) kernel(head string, body []statement) (*Kernel, error) {
	name, rest, ok := strings.Cut(head[strings.Index(head, ".entry")+len(".entry"):], "(")
	list, _, closed := strings.Cut(rest, ")")
	name = strings.TrimSpace(name)
	if !ok || !closed || name == "" {
		return nil, fmt.Errorf("ptx: entry %q has no parameters", head)
	}
	params, err := parameters(list)
	if err != nil {
		return nil, fmt.Errorf("ptx: %s: %w", name, err)
	}
	d.k = &Kernel{Name: name, params: params}
	d.params, d.fixes, d.constSlots, d.grain = map[string]param{}, map[int]string{}, map[uint64]int{}, 16
	for _, p := range params {
		d.params[p.name] = p
	}
	for _, s := range body {
		if err := d.statement(s); err != nil {
			return nil, fmt.Errorf("ptx: %s, line %d: %s: %w", name, s.line, s.text, err)
		}
	}
	k := d.k
	for at, label := range d.fixes {
		to, ok := d.labels[label]
		if !ok {
			return nil, fmt.Errorf("ptx: %s: no label %s", name, label)
		}
		k.code[at].target = int32(to)
	}
	k.code = append(k.code, instr{kind: kindExit, guard: -1})
	k.text, k.lines = append(k.text, "ret"), append(k.lines, 0)
	k.consts, k.shared, k.local, k.grain = d.consts, d.shared.bytes, d.local.bytes, uint(bits.Len(uint(d.grain))-1)
	// Constants come first, then registers.
	move := func(s *int32) {
		switch {
		case *s <= -2:
			*s = specialSlots + (-2 - *s)
		case *s >= specialSlots:
			*s += int32(len(d.consts))
		}
	}
	for i := range k.code {
		in := &k.code[i]
		for _, s := range []*int32{&in.guard, &in.dst, &in.a, &in.b, &in.c} {
			move(s)
		}
		for j := range in.list {
			move(&in.list[j])
		}
	}
	k.slots = specialSlots + len(d.consts) + len(d.slots)
	return k, nil
}

func (d *decoder) statement(s statement) error {
	text := s.text
	switch {
	case text == "{" || text == "}" || strings.HasPrefix(text, ".pragma"):
		return nil
	case strings.HasSuffix(text, ":"):
		d.labels[strings.TrimSuffix(text, ":")] = len(d.k.code)
		return nil
	case strings.HasPrefix(text, ".reg"):
		return d.registers(text)
	case strings.HasPrefix(text, ".shared"):
		return d.shared.declare(text)
	case strings.HasPrefix(text, ".local"):
		return d.local.declare(text)
	}
	in := instr{guard: -1, dst: -1, mask: ^uint64(0)} // missing operands are slot 0
	if text[0] == '@' {
		guard, rest, _ := strings.Cut(text[1:], " ")
		in.not = guard[0] == '!'
		slot, err := d.register(strings.TrimPrefix(guard, "!"))
		if err != nil {
			return err
		}
		in.guard, text = int32(slot), rest
	}
	name, rest, _ := strings.Cut(text, " ")
	args, err := operands(rest)
	if err != nil {
		return err
	}
	if err := d.decode(&in, name, strings.Split(name, "."), args); err != nil {
		return err
	}
	d.k.code = append(d.k.code, in)
	d.k.text, d.k.lines = append(d.k.text, s.text), append(d.k.lines, s.line)
	return nil
}

// registers decodes a declaration such as .reg .b32 %r<100> or .reg .b32 a, b.
func (d *decoder) registers(text string) error {
	words := strings.Fields(strings.ReplaceAll(text, ",", " "))
	if len(words) < 3 || bytesOf[words[1][1:]] == 0 {
		return errors.New("unknown kind of registers")
	}
	for _, name := range words[2:] {
		if i := strings.IndexByte(name, '<'); i > 0 {
			name = name[:i] + "#"
		}
		d.widths[name] = bytesOf[words[1][1:]]
	}
	return nil
}

// width is the size of a declared register in bytes, 0 for others.
func (d *decoder) width(name string) int {
	if w := d.widths[name]; w > 0 {
		return w
	}
	return d.widths[strings.TrimRight(name, "0123456789")+"#"]
}

// register returns the slot of a register.
func (d *decoder) register(name string) (int, error) {
	if s, ok := specials[name]; ok {
		return s, nil
	}
	if d.width(name) == 0 {
		return 0, fmt.Errorf("unknown register %s", name)
	}
	s, ok := d.slots[name]
	if !ok {
		s = specialSlots + len(d.slots)
		d.slots[name] = s
	}
	return s, nil
}

// value returns the slot of a register or constant of this size in bytes.
func (d *decoder) value(text string, size int) (int32, error) {
	if text[0] == '%' || d.width(text) > 0 {
		s, err := d.register(text)
		return int32(s), err
	}
	v, err := d.constant(text)
	if err != nil {
		return 0, err
	}
	if size < 8 {
		v &= 1<<(8*size) - 1
	}
	i, ok := d.constSlots[v]
	if !ok {
		i = len(d.consts)
		d.consts = append(d.consts, v)
		d.constSlots[v] = i
	}
	return int32(-2 - i), nil
}

func (d *decoder) constant(text string) (uint64, error) {
	if at, ok := d.shared.at[text]; ok {
		return uint64(at), nil
	}
	if at, ok := d.local.at[text]; ok {
		return uint64(at), nil
	}
	switch {
	case strings.HasPrefix(text, "0f"):
		return strconv.ParseUint(text[2:], 16, 32)
	case strings.HasPrefix(text, "0d"):
		return strconv.ParseUint(text[2:], 16, 64)
	}
	if v, err := strconv.ParseInt(text, 0, 64); err == nil {
		return uint64(v), nil
	}
	v, err := strconv.ParseUint(strings.TrimSuffix(text, "U"), 0, 64)
	if err != nil {
		return 0, fmt.Errorf("unknown constant %s", text)
	}
	return v, nil
}

// operands splits at commas outside braces.
func operands(text string) ([]string, error) {
	var all []string
	depth, from := 0, 0
	for i := 0; i <= len(text); i++ {
		switch {
		case i == len(text) || text[i] == ',' && depth == 0:
			one := strings.TrimSpace(text[from:i])
			if one == "" && (i < len(text) || len(all) > 0) {
				return nil, errors.New("an operand is missing")
			}
			if one != "" {
				all = append(all, one)
			}
			from = i + 1
		case text[i] == '{':
			depth++
		case text[i] == '}':
			depth--
		}
	}
	return all, nil
}

// vector returns the slots of {%r1, %r2} or of a single register.
func (d *decoder) vector(text string, size int) ([]int32, error) {
	inner, ok := strings.CutPrefix(text, "{")
	if !ok {
		s, err := d.value(text, size)
		return []int32{s}, err
	}
	names, err := operands(strings.TrimSuffix(inner, "}"))
	if err != nil {
		return nil, err
	}
	list := make([]int32, len(names))
	for i, name := range names {
		if name == "_" {
			list[i] = -1
		} else if list[i], err = d.value(name, size); err != nil {
			return nil, err
		}
	}
	return list, nil
}
