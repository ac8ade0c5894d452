package ptx

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

var errUnknown = errors.New("unknown instruction")

// decode decodes an instruction from the parts of its name and its operands.
func (d *decoder) decode(in *instr, name string, parts, args []string) error {
	last := parts[len(parts)-1]
	count := func(n int) error {
		if len(args) != n {
			return fmt.Errorf("%d operands, want %d", len(args), n)
		}
		return nil
	}
	switch parts[0] {
	case "bra":
		in.kind = kindBranch
		if err := count(1); err != nil {
			return err
		}
		d.fixes[len(d.k.code)] = args[0]
		return nil
	case "ret", "exit":
		in.kind = kindExit
		return count(0)
	case "trap":
		in.kind = kindTrap
		return count(0)
	case "membar", "fence":
		in.kind = kindNothing // all threads see the same memory at any time
		return nil
	case "bar", "barrier":
		if name == "bar.warp.sync" {
			return d.together(in, parts, args)
		}
		if name != "bar.sync" && name != "barrier.sync" || len(args) != 1 || args[0] != "0" {
			return errUnknown
		}
		in.kind = kindBarrier
		return nil
	case "shfl", "vote", "match":
		return d.together(in, parts, args)
	case "ld", "st", "atom", "red":
		return d.memory(in, parts, args)
	case "cvta":
		return d.cvta(in, parts, args)
	case "mov":
		if len(args) == 2 && (args[0][0] == '{' || args[1][0] == '{') {
			return d.pack(in, last, args)
		}
	case "lop3", "bfi": // their last operands are constants
		return d.constants(in, name, args)
	}
	fn, sources, err := arithmetic(name, d.options)
	if err != nil {
		return err
	}
	if err := count(1 + len(sources)); err != nil {
		return err
	}
	dst, err := d.register(args[0])
	if err != nil {
		return err
	}
	in.fn, in.dst = fn, int32(dst)
	for i, slot := range []*int32{&in.a, &in.b, &in.c}[:len(sources)] {
		if *slot, err = d.value(args[1+i], sources[i]); err != nil {
			return err
		}
	}
	return nil
}

// constants decodes lop3.b32 with its table, and bfi with its place and length.
func (d *decoder) constants(in *instr, name string, args []string) error {
	if len(args) != 5 {
		return errUnknown
	}
	last, err := d.constant(args[4])
	if err != nil {
		return err
	}
	sources := args[1:4]
	switch name {
	case "lop3.b32":
		in.fn = lookup(last)
	case "bfi.b32", "bfi.b64":
		from, err := d.constant(args[3])
		if err != nil {
			return err
		}
		in.fn, sources = insert(from, last, 8*uint64(bytesOf[name[4:]])), args[1:3]
	default:
		return errUnknown
	}
	dst, err := d.register(args[0])
	if err != nil {
		return err
	}
	in.dst = int32(dst)
	for i, slot := range []*int32{&in.a, &in.b, &in.c}[:len(sources)] {
		if *slot, err = d.value(sources[i], bytesOf[name[len(name)-3:]]); err != nil {
			return err
		}
	}
	return nil
}

// address parses [register+offset], [variable+offset] or [parameter+offset].
func (d *decoder) address(text string) (base string, offset uint64, err error) {
	inner, ok := strings.CutPrefix(text, "[")
	inner, closed := strings.CutSuffix(inner, "]")
	if !ok || !closed {
		return "", 0, fmt.Errorf("%s is not an address", text)
	}
	base, more, _ := strings.Cut(inner, "+")
	if more != "" {
		offset, err = d.constant(more)
	}
	return base, offset, err
}

// memory decodes loads, stores and atomic operations.
func (d *decoder) memory(in *instr, parts, args []string) error {
	kind := parts[len(parts)-1]
	size := bytesOf[kind]
	if size == 0 || kind == "pred" {
		return errUnknown
	}
	in.bytes, in.signed = uint8(size), kind[0] == 's'
	at, elements, op := 1, 1, ""
	for _, p := range parts[1 : len(parts)-1] {
		switch p {
		case "global":
			in.space = global
		case "shared":
			in.space = shared
		case "local":
			in.space = local
		case "param":
			in.kind = kindParam
		case "v2":
			elements = 2
		case "v4":
			elements = 4
		case "volatile", "nc", "relaxed", "acquire", "release", "acq_rel", "weak", "gpu", "cta", "sys":
			// memory ordering: other threads see everything
		case "add", "min", "max", "exch", "cas", "and", "or", "xor", "inc", "dec":
			op = p
		default:
			return errUnknown
		}
	}
	reads := parts[0] != "st" && parts[0] != "red"
	if !reads {
		at = 0
	}
	if len(args) <= at {
		return errors.New("an operand is missing")
	}
	base, offset, err := d.address(args[at])
	if err != nil {
		return err
	}
	in.offset = offset
	if in.kind == kindParam {
		p, ok := d.params[base]
		if !ok || parts[0] != "ld" || elements > 1 || p.of < int(offset)+size {
			return fmt.Errorf("parameter %s has no such bytes", base)
		}
		in.offset += uint64(p.at)
	} else if in.a, err = d.value(base, 8); err != nil {
		return err
	}
	if in.space == shared || in.space == generic {
		d.grain = min(d.grain, size)
	}
	if parts[0] == "atom" || parts[0] == "red" {
		return d.atomic(in, op, kind, args[at+1:], args[0], reads)
	}
	value := args[0]
	if parts[0] == "st" {
		if in.kind = kindStore; len(args) != 2 {
			return errors.New("want 2 operands")
		}
		value = args[1]
	} else if in.kind != kindParam {
		in.kind = kindLoad
	}
	if in.list, err = d.vector(value, size); err != nil {
		return err
	}
	if len(in.list) != elements {
		return fmt.Errorf("%d elements, want %d", len(in.list), elements)
	}
	if parts[0] == "ld" && in.signed { // sign-extend to the register's width
		in.mask = ^uint64(0) >> (64 - 8*max(size, d.width(strings.Trim(value, "{}"))))
	}
	in.dst = in.list[0]
	return nil
}

func (d *decoder) atomic(in *instr, op, kind string, values []string, to string, reads bool) error {
	in.kind = kindAtomic
	want := 1
	if op == "cas" {
		want = 2
	}
	if in.fn = atomics[op+"."+kind]; in.fn == nil || len(values) != want {
		return errUnknown
	}
	var err error
	if in.b, err = d.value(values[0], int(in.bytes)); err != nil {
		return err
	}
	if want == 2 {
		if in.c, err = d.value(values[1], int(in.bytes)); err != nil {
			return err
		}
	}
	if reads && to != "_" {
		dst, err := d.register(to)
		in.dst = int32(dst)
		return err
	}
	return nil
}

// pack decodes moves between a register and a vector.
func (d *decoder) pack(in *instr, kind string, args []string) error {
	size := bytesOf[kind]
	vector, one := args[0], args[1]
	in.kind = kindUnpack
	if args[1][0] == '{' {
		in.kind, vector, one = kindPack, args[1], args[0]
	}
	n := strings.Count(vector, ",") + 1
	if size == 0 || n > size || size%n != 0 {
		return errUnknown
	}
	in.bytes = uint8(size / n)
	var err error
	if in.list, err = d.vector(vector, size/n); err != nil {
		return err
	}
	if in.kind == kindPack {
		if slices.Contains(in.list, -1) {
			return errUnknown
		}
		dst, err := d.register(one)
		in.dst = int32(dst)
		return err
	}
	in.a, err = d.value(one, size)
	return err
}

// cvta decodes conversions between addresses in a space and generic ones.
func (d *decoder) cvta(in *instr, parts, args []string) error {
	to := parts[1] == "to"
	window := map[string]uint64{"global": 0, "shared": sharedWindow, "local": localWindow}
	name := parts[len(parts)-2]
	base, ok := window[name]
	if !ok || parts[len(parts)-1] != "u64" || len(args) != 2 {
		return errUnknown
	}
	if to {
		base = -base
	}
	in.fn = func(a, _, _ uint64) uint64 { return a + base }
	dst, err := d.register(args[0])
	if err != nil {
		return err
	}
	in.dst = int32(dst)
	in.a, err = d.value(args[1], 8)
	return err
}
