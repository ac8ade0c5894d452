package machine

import "slices"

// layout is the memory plan: the place of every value.
type layout struct {
	*storage
	tasks   []task // in the order in which they run
	loops   []loop // of tasks
	items   []item // of the arena; buffers refer to them
	work    []int  // by task: the item of its workspace, or -1
	offsets []int  // of the items
	bytes   int    // of the arena
}

// newLayout plans the arena. Tasks keep the order of the graph: a schedule that greedily frees as much as
// it can has the same peak on residual networks.
//
// A value that is made before a loop and read in it lives until the loop ends. One that the loop makes portion by
// portion lives from the loop's start on. Other results of its tasks live within a portion.
func newLayout(s *storage, tasks []task, loops []loop) *layout {
	l := &layout{storage: s, tasks: tasks, loops: loops, work: make([]int, len(tasks))}
	made := slices.Repeat([]int{-1}, len(l.buffers)) // first task that writes it
	for t, k := range tasks {
		for _, v := range k.out {
			if b := s.places[v].buffer; made[b] < 0 {
				made[b] = t
			}
		}
	}
	last := make([]int, len(l.buffers)) // last task that reads it
	for t, k := range tasks {
		for _, v := range k.in {
			b := s.places[v].buffer
			last[b] = max(last[b], t)
			if g := l.loopOf(t); made[b] < g.from {
				last[b] = g.to - 1
			}
		}
	}
	placed := make([]bool, len(l.buffers))
	for t := range tasks {
		k := &tasks[t]
		taken := make(map[int]bool) // buffers of inputs that a result takes over
		for i, v := range k.out {
			b := s.places[v].buffer
			x := &l.buffers[b]
			if x.owner != arena || placed[b] { // it is bound, or a view
				continue
			}
			placed[b] = true
			first, end := t, max(t, last[b])
			if s.places[v].step > 0 {
				first = l.loopOf(t).from // the first portion must last; readers behind the loop set the end
			}
			if x.kept {
				end = len(tasks)
			}
			if from := l.takeOver(k, i, t, last, taken); from >= 0 {
				taken[from] = true
				x.item = l.buffers[from].item
				l.items[x.item].last = end
				continue
			}
			x.item = len(l.items)
			l.items = append(l.items, item{x.bytes, first, end})
		}
		l.work[t] = -1
		if w := k.plan.Workspace; w > 0 {
			l.work[t] = len(l.items)
			l.items = append(l.items, item{w, t, t})
		}
	}
	l.offsets, l.bytes = pack(l.items)
	return l
}

// loopOf is the loop of a task: one of a single task that runs once, for a task in none.
func (l *layout) loopOf(t int) loop {
	for _, g := range l.loops {
		if g.from <= t && t < g.to {
			return g
		}
	}
	return loop{t, t + 1, 1}
}

// runs is the number of kernels that run for the first n tasks: those of a loop run several times.
func (l *layout) runs(n int) int {
	runs := n
	for _, g := range l.loops {
		if g.from < n {
			runs += (g.times - 1) * (g.to - g.from)
		}
	}
	return runs
}

// advances reports whether a task reads or writes other storage for the next portion.
func (l *layout) advances(t int) bool {
	moves := func(v int) bool { return l.places[v].step > 0 }
	return slices.ContainsFunc(l.tasks[t].in, moves) || slices.ContainsFunc(l.tasks[t].out, moves)
}

// takeOver returns the buffer of an input that output i of k, task t, may reuse, or -1. The device must allow it, the
// task must be the last reader and have nothing else in the buffer, and the sizes must agree.
func (l *layout) takeOver(k *task, i, t int, last []int, taken map[int]bool) int {
	// The buffer of a portion holds all of them. This excludes the last task of a loop, too: its operands seem to end
	// there, but the next portion reads them again.
	if l.places[k.out[i]].step > 0 {
		return -1
	}
	size := l.buffers[l.places[k.out[i]].buffer].bytes
	for _, in := range k.plan.Outputs[i].Over {
		from := l.places[k.in[in]].buffer
		b := &l.buffers[from]
		if b.owner == arena && !b.kept && last[from] == t && b.bytes == size && !taken[from] && l.users(k, from) == 1 {
			return from
		}
	}
	return -1
}

// users counts the values of a task that lie in buffer b.
func (l *layout) users(k *task, b int) int {
	n := 0
	for _, v := range k.in {
		if l.places[v].buffer == b {
			n++
		}
	}
	for _, v := range k.out {
		if l.places[v].buffer == b {
			n++
		}
	}
	return n
}

// lowerBound is the largest number of bytes that are live at once.
func (l *layout) lowerBound() int {
	change := make([]int, len(l.tasks)+2)
	for _, x := range l.items {
		change[x.first] += align(x.bytes)
		change[x.last+1] -= align(x.bytes)
	}
	live, most := 0, 0
	for _, c := range change {
		live += c
		most = max(most, live)
	}
	return most
}
