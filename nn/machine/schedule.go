package machine

// schedule orders the tasks so that, of those that can run, the one that adds least to the live memory comes first;
// it is often much below the order of the graph, where gradients of parameters come late.
func (l *layout) schedule() []int {
	n := len(l.tasks)
	waits := make([]int, n) // tasks before
	next := make([][]int, n)
	maker := make(map[int]int)
	for t, k := range l.tasks {
		for _, v := range k.out {
			maker[v] = t
		}
	}
	for t, k := range l.tasks {
		for _, v := range k.in {
			if m, ok := maker[v]; ok {
				next[m] = append(next[m], t)
				waits[t]++
			}
		}
	}
	readers := make([]int, len(l.buffers)) // tasks that still have to read it
	for t := range l.tasks {
		for _, b := range l.reads[t] {
			readers[b]++
		}
	}

	var ready, order []int
	for t := range l.tasks {
		if waits[t] == 0 {
			ready = append(ready, t)
		}
	}
	for len(ready) > 0 {
		best, least := 0, 0
		for i, t := range ready {
			cost := 0
			for _, b := range l.makes[t] {
				cost += l.buffers[b].bytes
			}
			for _, b := range l.reads[t] {
				if x := &l.buffers[b]; readers[b] == 1 && x.owner == arena && !x.kept {
					cost -= x.bytes
				}
			}
			if i == 0 || cost < least || cost == least && t < ready[best] {
				best, least = i, cost
			}
		}
		t := ready[best]
		ready = append(ready[:best], ready[best+1:]...)
		order = append(order, t)
		for _, b := range l.reads[t] {
			readers[b]--
		}
		for _, u := range next[t] {
			if waits[u]--; waits[u] == 0 {
				ready = append(ready, u)
			}
		}
	}
	return order
}
