package ptx

import (
	"fmt"
	"strings"
)

// exchange is a joint operation of a warp's lanes: each contributes its operands, and the mask of participating lanes.
type exchange func(lane int, members uint32, from *[32]lane) (value uint64, predicate bool)

// A lane is a lane's operands.
type lane struct{ a, b, c uint64 }

// shuffles return the source lane of a value, which may lie outside the lane's segment, and whether it is inside.
var shuffles = map[string]func(at, b, last, first int) (int, bool){
	"up":   func(at, b, last, _ int) (int, bool) { return at - b, at-b >= last },
	"down": func(at, b, last, _ int) (int, bool) { return at + b, at+b <= last },
	"bfly": func(at, b, last, _ int) (int, bool) { return at ^ b, at^b <= last },
	"idx":  func(_, b, last, first int) (int, bool) { return first | b, first|b <= last },
}

// votes count the members that vote yes.
var votes = map[string]func(yes, members uint32) uint64{
	"all.pred":   func(yes, members uint32) uint64 { return truth(yes == members) },
	"any.pred":   func(yes, _ uint32) uint64 { return truth(yes != 0) },
	"uni.pred":   func(yes, members uint32) uint64 { return truth(yes == 0 || yes == members) },
	"ballot.b32": func(yes, _ uint32) uint64 { return uint64(yes) },
}

// together decodes shfl.sync, vote.sync and match.any.sync; bar.warp.sync exchanges nothing.
func (d *decoder) together(in *instr, parts, args []string) error {
	in.kind = kindWarp
	in.list = []int32{-1, -1} // slots of the mask and of the predicate
	var err error
	if parts[0] == "bar" {
		if len(args) != 1 {
			return errUnknown
		}
		in.list[0], err = d.value(args[0], 4)
		return err
	}
	if len(args) < 3 || len(parts) != 4 && (len(parts) != 5 || parts[0] == "shfl") {
		return errUnknown
	}
	to, predicate, two := strings.Cut(args[0], "|")
	dst, err := d.register(to)
	if err != nil {
		return err
	}
	in.dst = int32(dst)
	if two {
		p, err := d.register(predicate)
		if err != nil {
			return err
		}
		in.list[1] = int32(p)
	}
	if in.list[0], err = d.value(args[len(args)-1], 4); err != nil {
		return err
	}
	args = args[1 : len(args)-1]
	size := bytesOf[parts[len(parts)-1]]
	switch way := strings.Join(parts[2:], "."); {
	case parts[0] == "shfl" && parts[1] == "sync" && shuffles[parts[2]] != nil && size == 4 && len(args) == 3:
		in.exchange = shuffle(shuffles[parts[2]])
	case parts[0] == "vote" && parts[1] == "sync" && votes[way] != nil && len(args) == 1 && !two:
		in.exchange = vote(votes[way])
		size = 1
	case parts[0] == "match" && parts[1] == "any" && parts[2] == "sync" && len(args) == 1 && !two:
		in.exchange = match
	default:
		return errUnknown
	}
	for i, slot := range []*int32{&in.a, &in.b, &in.c}[:len(args)] {
		if *slot, err = d.value(args[i], size); err != nil {
			return err
		}
	}
	return nil
}

func shuffle(way func(at, b, last, first int) (int, bool)) exchange {
	return func(at int, members uint32, from *[32]lane) (uint64, bool) {
		b, clamp, segment := int(from[at].b&31), int(from[at].c&31), int(from[at].c>>8&31)
		first := at & segment
		source, inside := way(at, b, first|clamp&^segment, first)
		if !inside {
			source = at
		}
		if members>>source&1 == 0 {
			panic(&Fault{Why: fmt.Sprintf("a shuffle reads the value of lane %d, which does not participate", source)})
		}
		return from[source].a, inside
	}
}

func vote(count func(yes, members uint32) uint64) exchange {
	return func(_ int, members uint32, from *[32]lane) (uint64, bool) {
		var yes uint32
		for l := range from {
			if members>>l&1 != 0 && from[l].a != 0 {
				yes |= 1 << l
			}
		}
		return count(yes, members), false
	}
}

func match(at int, members uint32, from *[32]lane) (uint64, bool) {
	var same uint32
	for l := range from {
		if members>>l&1 != 0 && from[l].a == from[at].a {
			same |= 1 << l
		}
	}
	return uint64(same), false
}

// meet lets the lanes of a warp exchange if all of them wait for each other. It reports whether some did.
func (b *block) meet(w *warp) bool {
	some := false
	for i := range w.threads {
		t := &w.threads[i]
		if t.state != atWarp {
			continue
		}
		in := &b.kernel.code[t.pc]
		members := uint32(t.regs[in.list[0]])
		if members>>i&1 == 0 {
			panic(&Fault{Why: fmt.Sprintf("lane %d is not in its own mask %#x", i, members), thread: t})
		}
		var from [32]lane
		there := true
		for l := range 32 {
			if members>>l&1 == 0 {
				continue
			}
			if l >= len(w.threads) || w.threads[l].state == done {
				panic(&Fault{Why: fmt.Sprintf("lane %d of mask %#x has ended or does not exist", l, members),
					thread: t})
			}
			o := &w.threads[l]
			if o.state != atWarp || o.pc != t.pc {
				there = false
				break
			}
			if uint32(o.regs[in.list[0]]) != members {
				panic(&Fault{Why: fmt.Sprintf("lanes %d and %d have different masks", i, l), thread: t})
			}
			from[l] = lane{o.regs[in.a], o.regs[in.b], o.regs[in.c]}
		}
		if !there {
			continue
		}
		some = true
		w.meets++
		for l := range w.threads {
			if members>>l&1 == 0 {
				continue
			}
			o := &w.threads[l]
			if in.exchange != nil {
				value, predicate := in.exchange(l, members, &from)
				o.regs[in.dst] = value
				if in.list[1] >= 0 {
					o.regs[in.list[1]] = truth(predicate)
				}
			}
			o.state = ready
			o.pc++
		}
	}
	return some
}
