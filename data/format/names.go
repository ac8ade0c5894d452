package format

// names is a list of strings in one piece of memory: an index of a million images stays small and
// gives the garbage collector nothing to follow.
type names struct {
	text []byte
	end  []int
}

func (n *names) add(s string) {
	n.text = append(n.text, s...)
	n.end = append(n.end, len(n.text))
}

func (n *names) len() int { return len(n.end) }

func (n *names) at(i int) string {
	start := 0
	if i > 0 {
		start = n.end[i-1]
	}
	return string(n.text[start:n.end[i]])
}
