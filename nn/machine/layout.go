package machine

import "slices"

// layout is where everything lies, and the order of the tasks for which that is right.
type layout struct {
	*storage
	tasks []task
	reads [][]int // buffers in the arena or not, by task, without repetition
	makes [][]int // buffers in the arena

	order   []int // of tasks
	items   []item
	work    []int // by task: the item of its workspace, or -1
	offsets []int // of the items
	bytes   int   // of the arena
}

// newLayout plans the arena: of the order of the graph and one that saves memory it takes what needs less.
func newLayout(s *storage, tasks []task) *layout {
	l := &layout{storage: s, tasks: tasks, reads: make([][]int, len(tasks)), makes: make([][]int, len(tasks))}
	made := make([]bool, len(s.buffers))
	for t, k := range tasks {
		for _, v := range k.in {
			if b := s.places[v].buffer; !slices.Contains(l.reads[t], b) {
				l.reads[t] = append(l.reads[t], b)
			}
		}
		for _, v := range k.out {
			if b := s.places[v].buffer; s.buffers[b].owner == arena && !made[b] {
				made[b] = true
				l.makes[t] = append(l.makes[t], b)
			}
		}
	}
	natural := make([]int, len(tasks))
	for t := range natural {
		natural[t] = t
	}
	l.plan(natural)
	saving := *l
	saving.storage = &storage{slices.Clone(s.buffers), s.places, s.inputs}
	saving.plan(l.schedule())
	if saving.bytes < l.bytes {
		return &saving
	}
	return l
}

// plan finds lives and offsets for an order of the tasks.
func (l *layout) plan(order []int) {
	l.order = order
	l.items = nil
	l.work = make([]int, len(l.tasks))
	last := make([]int, len(l.buffers)) // place in the order of the last task that reads it
	for at, t := range order {
		for _, b := range l.reads[t] {
			last[b] = at
		}
	}
	for at, t := range order {
		taken := make(map[int]bool) // buffers of inputs that a result took over
		for _, b := range l.makes[t] {
			x := &l.buffers[b]
			end := max(at, last[b])
			if x.kept {
				end = len(order)
			}
			if from := l.takeOver(t, b, at, last, taken); from >= 0 {
				taken[from] = true
				x.item = l.buffers[from].item
				l.items[x.item].last = end
				continue
			}
			x.item = len(l.items)
			l.items = append(l.items, item{x.bytes, at, end})
		}
		l.work[t] = -1
		if w := l.tasks[t].plan.Workspace; w > 0 {
			l.work[t] = len(l.items)
			l.items = append(l.items, item{w, at, at})
		}
	}
	l.offsets, l.bytes = pack(l.items)
}

// takeOver is the buffer that result b of task t, at a place of the order, may take over, or -1: the device
// allows it, the buffer dies there, nothing else of the task lies in it, and the sizes agree.
func (l *layout) takeOver(t, b, at int, last []int, taken map[int]bool) int {
	k := &l.tasks[t]
	for i, v := range k.out {
		if l.places[v].buffer != b || k.plan.Outputs[i].View != nil {
			continue
		}
		for _, in := range k.plan.Outputs[i].Over {
			from := l.places[k.in[in]].buffer
			x := &l.buffers[from]
			if x.owner == arena && !x.kept && last[from] == at && x.bytes == l.buffers[b].bytes && !taken[from] && l.users(k, from) == 1 {
				return from
			}
		}
	}
	return -1
}

// users counts the values of a task that lie in buffer b.
func (l *layout) users(k *task, b int) int {
	n := 0
	for _, vs := range [][]int{k.in, k.out} {
		for _, v := range vs {
			if l.places[v].buffer == b {
				n++
			}
		}
	}
	return n
}

// lowerBound is the largest number of bytes that are live at once.
func (l *layout) lowerBound() int {
	change := make([]int, len(l.order)+2)
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
