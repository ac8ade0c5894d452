package nn

import (
	_ "embed"
	"fmt"
	"strings"
	"sync"
)

// Sizes are those of a net for its default input and classes.
type Sizes struct {
	Parameters int    // numbers of all tensors of parameters
	Head       int    // of them those of the layers that make the logits
	Tensors    int    // tensors of parameters but for the head's
	Widths     [3]int // the largest lengths of vectors among these, in descending order; 0 where there are fewer
}

//go:embed sizes.tsv
var sizesTable string

var sizes = sync.OnceValue(func() map[string]Sizes {
	m := map[string]Sizes{}
	for line := range strings.Lines(sizesTable) {
		var name string
		var s Sizes
		if _, err := fmt.Sscan(line, &name, &s.Parameters, &s.Head, &s.Tensors, &s.Widths[0], &s.Widths[1],
			&s.Widths[2]); err != nil {
			panic(fmt.Sprintf("nn: sizes.tsv: %q: %v", line, err))
		}
		m[name] = s
	}
	return m
})

// Sizes looks the net up in the table of this module's nets, which is faster than building it. Others are not there.
func (a Architecture) Sizes() (s Sizes, ok bool) {
	s, ok = sizes()[a.Name]
	return s, ok
}
