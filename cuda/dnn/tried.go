//go:build gpu && cgo

package dnn

import (
	"fmt"
	"time"
)

// Tried is the result of a plan's run on the card.
type Tried struct {
	Graph     *Graph
	Engine    string
	Workspace int64
	Took      time.Duration // 0: not timed
	Err       error         // the reason why it does not run, or nil
}

// String is a line of a table: graph, convolution, engine, workspace in bytes, and microseconds or the error.
func (t Tried) String() string {
	how := "not timed"
	switch {
	case t.Err != nil:
		how = t.Err.Error()
	case t.Took > 0:
		how = fmt.Sprintf("%.1f", float64(t.Took)/float64(time.Microsecond))
	}
	return fmt.Sprintf("%s\t%v\t%s\t%d\t%s", t.Graph.Name, t.Graph.extents(), t.Engine, t.Workspace, how)
}

// tell reports a plan.
func (p *Plans) tell(e Engine, workspace int64, took time.Duration, err error) {
	if p.o.Tried != nil {
		p.o.Tried(Tried{p.g, e.String(), workspace, took, err})
	}
}

// timed is a measured time, else 0.
func timed(took time.Duration, measured bool) time.Duration {
	if !measured {
		return 0
	}
	return took
}
