//go:build gpu && cgo

package dnn

import (
	"fmt"
	"time"
)

// Tried is what came of a plan, or of an algorithm, when it ran on the card.
type Tried struct {
	Graph     *Graph
	Engine    string // or the number of the algorithm
	Workspace int64
	Took      time.Duration // 0: it was not timed
	Err       error         // that it does not run with, or nil
}

// String is a line of a table: the graph's name and its convolution, the engine, its workspace in bytes, microseconds or the error.
func (t Tried) String() string {
	how := "not timed"
	switch {
	case t.Err != nil:
		how = t.Err.Error()
	case t.Took > 0:
		how = fmt.Sprintf("%.1f", float64(t.Took)/float64(time.Microsecond))
	}
	return fmt.Sprintf("%s\t%v\t%s\t%d\t%s", t.Graph.Name, t.Graph.Shape(), t.Engine, t.Workspace, how)
}

// tell tells of a plan.
func (p *Plans) tell(e Engine, workspace int64, took time.Duration, err error) {
	if p.o.Tried != nil {
		p.o.Tried(Tried{p.g, e.String(), workspace, took, err})
	}
}

// timed is a time, 0 where it was not taken.
func timed(took time.Duration, measured bool) time.Duration {
	if !measured {
		return 0
	}
	return took
}
