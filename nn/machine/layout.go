package machine

// layout is the memory plan: the place of every value.
type layout struct {
	*storage
	tasks   []task // in the order in which they run
	items   []item // of the arena; buffers refer to them
	work    []int  // by task: the item of its workspace, or -1
	offsets []int  // of the items
	bytes   int    // of the arena
}

// newLayout plans the arena. Tasks keep the order of the graph: a schedule that greedily frees as much as
// it can has the same peak on residual networks.
func newLayout(s *storage, tasks []task) *layout {
	l := &layout{storage: s, tasks: tasks, work: make([]int, len(tasks))}
	last := make([]int, len(l.buffers)) // last task that reads it
	for t, k := range tasks {
		for _, v := range k.in {
			last[s.places[v].buffer] = t
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
			end := max(t, last[b])
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
			l.items = append(l.items, item{x.bytes, t, end})
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

// takeOver returns the buffer of an input that output i of k, task t, may reuse, or -1. The device must allow it, the
// task must be the last reader and have nothing else in the buffer, and the sizes must agree.
func (l *layout) takeOver(k *task, i, t int, last []int, taken map[int]bool) int {
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
