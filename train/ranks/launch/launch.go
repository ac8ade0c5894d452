// Package launch joins the processes that a launcher started, or that it starts itself, to one group of ranks, each
// with its device.
package launch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"onlinerna/internal/text"
	"onlinerna/nn/device"
	"onlinerna/train/option"
	"onlinerna/train/ranks"
	"onlinerna/train/ranks/mpi"
	"onlinerna/train/ranks/sockets"
)

// Options configure how processes of a launcher work together.
type Options struct {
	Distributed string        // auto or off; empty: auto
	Timeout     time.Duration // 0: ranks.DefaultTimeout
}

// Table lists the options of a command line.
var Table = option.Table[Options]{
	{Name: "distributed", Group: "Run", Default: "auto", Field: func(o *Options) any { return &o.Distributed },
		Resumable: true, Values: option.OneOf("auto", "off"),
		Help: "auto: with the other processes that mpirun, srun, torchrun or --device cuda:all has started, each with " +
			"its share of a step's batches; off: alone"},
	{Name: "comm-timeout", Group: "Run", Default: "10m", Field: func(o *Options) any { return &o.Timeout },
		Check: option.Positive, Resumable: true, Help: "`time` that processes wait for each other before it is an error"},
}

// Ended is the exit status of ranks whose errors have already been printed.
type Ended int

// Error names the status.
func (e Ended) Error() string { return fmt.Sprintf("ranks ended with status %d", int(e)) }

// ExitStatus is this process's exit status.
func (e Ended) ExitStatus() int { return int(e) }

// interrupted is the exit status of an interrupted process.
const interrupted = 130

// stopped reports whether an error is an interruption.
func stopped(err error) bool {
	var e interface{ ExitStatus() int }
	return errors.As(err, &e) && e.ExitStatus() == interrupted
}

// aloneHint tells the user how to run without the other processes.
const aloneHint = "; --distributed off goes without the others"

// launched detects how this process was started; the zero World if without a launcher.
func (o *Options) launched() (ranks.World, error) {
	if o.Distributed == "off" {
		return ranks.World{}, nil
	}
	o.Timeout = cmp.Or(o.Timeout, ranks.DefaultTimeout)
	w, err := ranks.Detect(os.LookupEnv)
	if err != nil {
		return w, fmt.Errorf("%w%s", err, aloneHint)
	}
	if !w.Many() {
		return ranks.World{}, nil
	}
	return w, nil
}

// Join joins the other ranks of the launcher, which compute on the named devices. The group is nil for a single
// process.
func (o *Options) Join(name string) (*ranks.Group, error) {
	w, err := o.launched()
	if err != nil || w.Launcher == "" {
		return nil, err
	}
	many := "ranks"
	if w.Size > 0 {
		many = text.Count(w.Size, "rank")
	}
	var e ranks.Engine
	if w.Engine == "mpi" && !mpi.Available && onGPUs(name) { // NCCL does without MPI
		if w, err = w.Meet(os.LookupEnv); err != nil {
			return nil, fmt.Errorf("%s started %s, this program was built without MPI, %w%s", w.Launcher, many, err,
				aloneHint)
		}
	}
	if w.Engine == "mpi" {
		e, err = mpi.Open(w, o.Timeout)
	} else {
		e, err = o.meet(w, name)
	}
	if err != nil {
		return nil, fmt.Errorf("%s started %s: %w%s", w.Launcher, many, err, aloneHint)
	}
	g, err := ranks.Join(e, ranks.Options{World: w, Timeout: o.Timeout})
	if err != nil {
		return nil, fmt.Errorf("%w%s", err, aloneHint)
	}
	return g, nil
}

// onGPUs reports whether a name means GPUs that this machine has.
func onGPUs(name string) bool {
	if name == "auto" {
		name = kindFor(ranks.World{Engine: "nccl"})
	}
	kind := device.Of(name)
	if kind.Several == nil {
		return false
	}
	_, err := kind.Several("all")
	return err == nil
}

// meet connects ranks whose GPUs work together at the launcher's address.
func (o *Options) meet(w ranks.World, name string) (ranks.Engine, error) {
	if name == "auto" {
		name = kindFor(w)
	}
	kind := device.Of(name)
	if kind.Several == nil {
		return nil, fmt.Errorf("which work together on GPUs alone, not on device %s: start ranks on CPUs by mpirun or srun",
			name)
	}
	if _, err := kind.Several("all"); err != nil {
		return nil, fmt.Errorf("which work together on GPUs alone: %w; start ranks on CPUs by mpirun or srun", err)
	}
	key, err := ranksKey()
	if err != nil {
		return nil, err
	}
	if key == "" && w.Network == "tcp" && w.Rank == 0 {
		fmt.Fprintf(os.Stderr, "warning: ranks meet at %s without a key, where others may join, too: set %s to a file "+
			"with one\n",
			w.Master, ranks.KeyFileVar)
	}
	to := sockets.Options{Network: w.Network, Address: w.Master, Rank: w.Rank, Size: w.Size, Name: "sockets",
		Timeout: o.Timeout, Key: key, Job: os.Getenv("TORCHELASTIC_RUN_ID"), Listen: os.Getenv(ranks.ListenVar)}
	if w.Launcher == ranks.Own {
		watchParent()
		to.Lost = func(error, bool) { os.Exit(1) } // the parent process reports which rank has ended
	}
	return sockets.Open(to)
}

// Run calls run on each rank of a launcher, or in this process alone. If the name means several devices, it starts one
// process for each of them with the same arguments.
func (o *Options) Run(ctx context.Context, name string, run func(g *ranks.Group) error) error {
	list, err := o.starts(name)
	if err != nil {
		return err
	}
	if list != nil {
		return spawn(ctx, list)
	}
	g, err := o.Join(name)
	if err != nil {
		return err
	}
	return On(g, func() error { return run(g) })
}

// starts lists the GPUs for which this program starts ranks itself; nil for none.
func (o *Options) starts(name string) ([]string, error) {
	if !Several(name) || o.Distributed == "off" {
		return nil, nil
	}
	if w, err := o.launched(); err != nil || w.Launcher != "" {
		return nil, err
	}
	list, err := each(name)
	if err != nil || len(list) == 1 {
		return nil, err
	}
	return list, nil
}

// On runs f on a rank and leaves the group. An error unknown to the other ranks ends them as well.
func On(g *ranks.Group, f func() error) error {
	err := f()
	if g == nil {
		return err
	}
	if err != nil && !ranks.Common(err) && !stopped(err) {
		g.Abort(err)
	}
	if e := g.Close(); err == nil {
		return e
	}
	if !g.First() && !stopped(err) {
		return Ended(1)
	}
	return err
}

// watchParent ends this process when its parent ends: the parent holds the other end of a pipe.
func watchParent() {
	pipe := os.NewFile(parentPipe, "parent")
	go func() {
		io.Copy(io.Discard, pipe)
		os.Exit(1)
	}()
}
