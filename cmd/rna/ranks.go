package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"onlinerna/train"
	"onlinerna/train/ranks"
	"onlinerna/train/ranks/mpi"
)

// ranksFlags say how processes that a launcher has started work together.
type ranksFlags struct {
	distributed string
	timeout     time.Duration
}

func (f *ranksFlags) add(g group) {
	g.StringVar(&f.distributed, "distributed", "auto", "auto: with the other processes that mpirun or srun has started, each with its share of a step's batches; off: alone")
	g.DurationVar(&f.timeout, "comm-timeout", ranks.DefaultTimeout, "`time` that processes wait for each other before it is an error")
}

// aloneHint says how to do without the other processes.
const aloneHint = "; --distributed off goes without the others"

// join joins the other ranks of the launcher. The group is nil for a process of its own.
func (f *ranksFlags) join() (*ranks.Group, error) {
	switch {
	case f.distributed != "auto" && f.distributed != "off":
		return nil, fmt.Errorf("--distributed %s: auto or off", f.distributed)
	case f.timeout <= 0:
		return nil, fmt.Errorf("--comm-timeout %v: must be above 0", f.timeout)
	case f.distributed == "off":
		return nil, nil
	}
	w, err := ranks.Detect(os.LookupEnv)
	if err != nil {
		return nil, fmt.Errorf("%w%s", err, aloneHint)
	}
	if !w.Many() {
		return nil, nil
	}
	many := "ranks"
	if w.Size > 0 {
		many = count(w.Size, "rank")
	}
	if w.Engine != "mpi" {
		return nil, fmt.Errorf("%s: %s, which work together over MPI alone: start them by mpirun or srun%s", w.Launcher, many, aloneHint)
	}
	e, err := mpi.Open(w, f.timeout)
	if err != nil {
		return nil, fmt.Errorf("%s started %s: %w%s", w.Launcher, many, err, aloneHint)
	}
	g, err := ranks.Join(e, ranks.Options{World: w, Timeout: f.timeout})
	if err != nil {
		return nil, fmt.Errorf("%w%s", err, aloneHint)
	}
	return g, nil
}

// errQuiet is an error of all ranks that another has said.
var errQuiet = errors.New("said by another rank")

// with runs f on a rank. An error that the others do not know of ends them, too.
func with(g *ranks.Group, f func() error) error {
	err := f()
	if g == nil {
		return err
	}
	if err != nil && !train.Common(err) && !errors.Is(err, errStopped) {
		g.Abort(err)
	}
	if e := g.Close(); err == nil {
		return e
	}
	if !g.First() && !errors.Is(err, errStopped) {
		return errQuiet
	}
	return err
}
