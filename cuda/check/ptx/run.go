package ptx

import (
	"fmt"
	"math/rand/v2"
)

// A Launch is a run of a kernel.
type Launch struct {
	Blocks, Threads [3]int   // x, y, z
	Parameters      [][]byte // the bytes of each
	Memory          *Memory

	// Only lists the blocks that run; nil: all.
	Only []int
	// Order is the order of blocks, and of threads between barriers: [Forward], [Backward], or the seed of a random
	// one.
	Order Order
}

// Order is an order of blocks and threads.
type Order uint64

const (
	Forward  Order = 0
	Backward Order = 1
)

// Stats count the work of a run.
type Stats struct {
	Instructions uint64   // of all threads
	Ran          []uint64 // number of executions of each of the kernel's instructions
}

// A Fault is a kernel's error and its place.
type Fault struct {
	Kernel, Instruction string // with its line
	Block, Thread       [3]int
	Why                 string

	thread *thread
}

func (f *Fault) Error() string {
	return fmt.Sprintf("ptx: %s, line %s, block %v, thread %v: %s", f.Kernel, f.Instruction, f.Block, f.Thread, f.Why)
}

type state uint8

const (
	ready state = iota
	atBarrier
	atWarp
	done
)

// A thread keeps its registers in slots.
type thread struct {
	regs  []uint64
	pc    int
	state state
	index int
	warp  *warp
	local []byte
}

// A warp has up to 32 threads; meets counts their exchanges.
type warp struct {
	index   int32
	threads []thread
	meets   uint32
}

// block is the running block.
type block struct {
	kernel     *Kernel
	memory     *Memory
	parameters []byte
	shared     sharedMemory
	threads    []thread
	warps      []warp
	now        *thread
	ran        []uint64
	left       int // backward jumps until the loop counts as endless
}

// jumpsMost limits the backward jumps of a block.
const jumpsMost = 1 << 26

// Run runs the kernel. It fails with a [*Fault] or with an error about the launch.
func (k *Kernel) Run(l Launch) (stats Stats, err error) {
	if len(l.Parameters) != len(k.params) {
		return stats, fmt.Errorf("ptx: %s: %d parameters, want %d", k.Name, len(l.Parameters), len(k.params))
	}
	b := &block{kernel: k, memory: l.Memory, ran: make([]uint64, len(k.code)), left: jumpsMost}
	for i, p := range k.params {
		if len(l.Parameters[i]) != p.of {
			return stats, fmt.Errorf("ptx: %s: parameter %d has %d bytes, want %d", k.Name, i, len(l.Parameters[i]),
				p.of)
		}
		b.parameters = append(append(b.parameters, make([]byte, p.at-len(b.parameters))...), l.Parameters[i]...)
	}
	n := l.Threads[0] * l.Threads[1] * l.Threads[2]
	if n < 1 || n > 1024 {
		return stats, fmt.Errorf("ptx: %s: a block of %v threads", k.Name, l.Threads)
	}
	b.shared = newShared(k.shared, k.grain)
	b.prepare(l, n)
	total := l.Blocks[0] * l.Blocks[1] * l.Blocks[2]
	var at int
	defer func() {
		stats.Ran = b.ran
		for _, n := range b.ran {
			stats.Instructions += n
		}
		switch f := recover().(type) {
		case nil:
		case *Fault:
			if f.thread == nil {
				f.thread = b.now
			}
			t := f.thread
			f.Kernel, f.Instruction, f.Block = k.Name, k.Instruction(t.pc), coordinates(at, l.Blocks)
			f.Thread = coordinates(t.index, l.Threads)
			err = f
		default:
			panic(f)
		}
	}()
	random := rand.New(rand.NewPCG(uint64(l.Order), 1))
	blocks, threads := order(l.Order, total, random), order(l.Order, n, random)
	if l.Only != nil {
		blocks = l.Only
	}
	for _, at = range blocks {
		b.run(coordinates(at, l.Blocks), threads)
	}
	return stats, nil
}

// order returns an order of n items.
func order(o Order, n int, random *rand.Rand) []int {
	if o > Backward {
		return random.Perm(n)
	}
	all := make([]int, n)
	for i := range all {
		all[i] = i
		if o == Backward {
			all[i] = n - 1 - i
		}
	}
	return all
}

// coordinates are the coordinates of item i.
func coordinates(i int, of [3]int) [3]int {
	return [3]int{i % of[0], i / of[0] % of[1], i / of[0] / of[1]}
}

// prepare makes the threads, with the part that is the same in each block.
func (b *block) prepare(l Launch, n int) {
	k := b.kernel
	b.threads = make([]thread, n)
	b.warps = make([]warp, (n+31)/32)
	regs, locals := make([]uint64, n*k.slots), make([]byte, n*k.local)
	for i := range b.threads {
		t := &b.threads[i]
		t.index, t.warp = i, &b.warps[i/32]
		t.regs, t.local = regs[i*k.slots:(i+1)*k.slots], locals[i*k.local:(i+1)*k.local]
		for j, x := range coordinates(i, l.Threads) {
			t.regs[slotTid+j], t.regs[slotNtid+j], t.regs[slotNctaid+j] = uint64(x), uint64(l.Threads[j]),
				uint64(l.Blocks[j])
		}
		t.regs[slotLane], t.regs[slotWarp] = uint64(i%32), uint64(i/32)
		copy(t.regs[specialSlots:], k.consts)
	}
	for i := range b.warps {
		b.warps[i] = warp{index: int32(i), threads: b.threads[32*i : min(n, 32*i+32)]}
	}
}

// run runs a block until all of its threads have ended.
func (b *block) run(at [3]int, order []int) {
	b.shared.start()
	for i := range b.threads {
		t := &b.threads[i]
		t.pc, t.state = 0, ready
		for j, x := range at {
			t.regs[slotCtaid+j] = uint64(x)
		}
	}
	for {
		waiting := 0
		moved := false
		for _, i := range order {
			t := &b.threads[i]
			if t.state == ready {
				b.now, moved = t, true
				b.thread(t)
			}
		}
		for i := range b.warps {
			moved = b.meet(&b.warps[i]) || moved
		}
		if moved {
			continue
		}
		var stuck *thread
		for i := range b.threads {
			switch t := &b.threads[i]; t.state {
			case atBarrier:
				waiting++
			case atWarp:
				stuck = t
			}
		}
		switch {
		case stuck != nil:
			panic(&Fault{Why: "it waits for lanes that never arrive", thread: stuck})
		case waiting == 0:
			return
		}
		// A barrier does not wait for ended threads.
		b.shared.barriers++
		for i := range b.threads {
			if t := &b.threads[i]; t.state == atBarrier {
				t.state = ready
				t.pc++
			}
		}
	}
}

// thread runs a thread until it waits or ends.
func (b *block) thread(t *thread) {
	code, regs := b.kernel.code, t.regs
	pc := t.pc
	for {
		in := &code[pc]
		b.ran[pc]++
		if in.guard >= 0 && (regs[in.guard] != 0) == in.not {
			pc++
			continue
		}
		switch in.kind {
		case kindALU:
			t.pc = pc // for the message of a division by zero
			regs[in.dst] = in.fn(regs[in.a], regs[in.b], regs[in.c])
		case kindBranch:
			to := int(in.target)
			if to <= pc {
				if b.left--; b.left < 0 {
					t.pc = pc
					panic(&Fault{Why: "a loop without end"})
				}
			}
			pc = to
			continue
		case kindLoad:
			t.pc = pc
			n := int(in.bytes)
			from := b.find(t, in.space, regs[in.a]+in.offset, n*len(in.list), reads)
			for i, s := range in.list {
				v := load(from[i*n : i*n+n])
				if in.signed {
					shift := 64 - 8*uint(n)
					v = uint64(int64(v<<shift)>>shift) & in.mask
				}
				if s >= 0 {
					regs[s] = v
				}
			}
		case kindStore:
			t.pc = pc
			n := int(in.bytes)
			to := b.find(t, in.space, regs[in.a]+in.offset, n*len(in.list), writes)
			for i, s := range in.list {
				store(to[i*n:i*n+n], regs[s])
			}
		case kindParam:
			regs[in.dst] = load(b.parameters[in.offset : in.offset+uint64(in.bytes)])
			if in.signed {
				shift := 64 - 8*uint(in.bytes)
				regs[in.dst] = uint64(int64(regs[in.dst]<<shift)>>shift) & in.mask
			}
		case kindAtomic:
			t.pc = pc
			cell := b.find(t, in.space, regs[in.a]+in.offset, int(in.bytes), updates)
			old := load(cell)
			store(cell, in.fn(old, regs[in.b], regs[in.c]))
			if in.dst >= 0 {
				regs[in.dst] = old
			}
		case kindPack:
			var v uint64
			for i, s := range in.list {
				v |= regs[s] << (8 * uint(in.bytes) * uint(i))
			}
			regs[in.dst] = v
		case kindUnpack:
			v, mask := regs[in.a], ^uint64(0)>>(64-8*uint(in.bytes))
			for i, s := range in.list {
				if s >= 0 {
					regs[s] = v >> (8 * uint(in.bytes) * uint(i)) & mask
				}
			}
		case kindBarrier:
			t.pc, t.state = pc, atBarrier
			return
		case kindWarp:
			t.pc, t.state = pc, atWarp
			return
		case kindExit:
			t.pc, t.state = pc, done
			return
		case kindTrap:
			t.pc = pc
			panic(&Fault{Why: "a trap"})
		}
		pc++
	}
}
