package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"onlinerna/cuda"
	"onlinerna/internal/cli"
	"onlinerna/internal/text"
	"onlinerna/nn/device"
	"onlinerna/train"
	"onlinerna/train/option"
	"onlinerna/train/ranks"
	"onlinerna/train/ranks/mpi"
	"onlinerna/train/ranks/sockets"
)

// ranksFlags say how processes that a launcher has started work together.
type ranksFlags struct {
	distributed string
	timeout     time.Duration
}

var ranksOptions = option.Table[ranksFlags]{
	{Name: "distributed", Group: "Run", Default: "auto", Field: func(f *ranksFlags) any { return &f.distributed }, Resumable: true,
		Values: option.OneOf("auto", "off"),
		Help: "auto: with the other processes that mpirun, srun, torchrun or --device cuda:all has started, each with its share of a step's batches; " +
			"off: alone"},
	{Name: "comm-timeout", Group: "Run", Default: "5m", Field: func(f *ranksFlags) any { return &f.timeout }, Check: option.Positive, Resumable: true,
		Help: "`time` that processes wait for each other before it is an error"},
}

func (f *ranksFlags) add(g cli.Group) {
	for _, x := range cli.Flags(ranksOptions, f, new([]option.Setting)) {
		g.AddFlag(x.Flag)
	}
}

// aloneHint says how to do without the other processes.
const aloneHint = "; --distributed off goes without the others"

// launched is how this process was started, the zero World where that is by itself.
func (f *ranksFlags) launched() (ranks.World, error) {
	if f.distributed == "off" {
		return ranks.World{}, nil
	}
	if f.timeout == 0 {
		f.timeout = ranks.DefaultTimeout
	}
	w, err := ranks.Detect(os.LookupEnv)
	if err != nil {
		return w, fmt.Errorf("%w%s", err, aloneHint)
	}
	if !w.Many() {
		return ranks.World{}, nil
	}
	return w, nil
}

// join joins the other ranks of the launcher, which compute on devices of a name. The group is nil for a process of its own.
func (f *ranksFlags) join(device string) (*ranks.Group, error) {
	w, err := f.launched()
	if err != nil || w.Launcher == "" {
		return nil, err
	}
	many := "ranks"
	if w.Size > 0 {
		many = text.Count(w.Size, "rank")
	}
	var e ranks.Engine
	if w.Engine == "mpi" {
		e, err = mpi.Open(w, f.timeout)
	} else {
		e, err = f.meet(w, device)
	}
	if err != nil {
		return nil, fmt.Errorf("%s started %s: %w%s", w.Launcher, many, err, aloneHint)
	}
	g, err := ranks.Join(e, ranks.Options{World: w, Timeout: f.timeout})
	if err != nil {
		return nil, fmt.Errorf("%w%s", err, aloneHint)
	}
	return g, nil
}

// meet has ranks whose GPUs work together meet at the launcher's address.
func (f *ranksFlags) meet(w ranks.World, device string) (ranks.Engine, error) {
	if kind := kindOf(device); kind != "cuda" && kind != "auto" {
		return nil, fmt.Errorf("which work together on GPUs alone, not on device %s: start ranks on CPUs by mpirun or srun", device)
	}
	if _, err := cuda.Devices(); err != nil {
		return nil, fmt.Errorf("which work together on GPUs alone: %w; start ranks on CPUs by mpirun or srun", err)
	}
	key, err := ranksKey()
	if err != nil {
		return nil, err
	}
	if key == "" && w.Network == "tcp" && w.Rank == 0 {
		fmt.Fprintf(os.Stderr, "warning: ranks meet at %s without a key, where others may join, too: set %s to a file with one\n", w.Master, ranks.KeyFileVar)
	}
	o := sockets.Options{Network: w.Network, Address: w.Master, Rank: w.Rank, Size: w.Size, Name: "sockets", Timeout: f.timeout, Key: key,
		Job: os.Getenv("TORCHELASTIC_RUN_ID"), Listen: os.Getenv(ranks.ListenVar)}
	if w.Launcher == ranks.Own {
		watchParent()
		o.Lost = func(error, bool) { os.Exit(1) } // the process that has started the ranks says which has ended
	}
	return sockets.Open(o)
}

// several says whether a device's name is that of the GPUs of several ranks, which this program starts itself.
func several(device string) bool {
	return device == "cuda:all" || strings.HasPrefix(device, "cuda:") && strings.Contains(device, ",")
}

// each lists the GPUs that such a name means.
func each(device string) ([]string, error) {
	_, names, _ := strings.Cut(device, ":")
	if names != "all" {
		list := strings.Split(names, ",")
		for i, name := range list {
			n, err := cuda.Ordinal(name)
			if err != nil {
				return nil, err
			}
			list[i] = fmt.Sprintf("cuda:%d", n)
		}
		return list, nil
	}
	all, err := cuda.Devices()
	if err != nil {
		return nil, fmt.Errorf("device %s: %w; or use --device cpu", device, err)
	}
	var list []string
	for _, d := range all {
		list = append(list, fmt.Sprintf("cuda:%d", d.Ordinal))
	}
	if len(list) == 0 {
		return nil, errors.New("device cuda:all: there is no GPU: use --device cpu")
	}
	return list, nil
}

// run has f run on devices of a name: on the ranks of a launcher, or of those that it starts itself, one a GPU, or alone.
func (f *ranksFlags) run(ctx context.Context, device string, run func(g *ranks.Group) error) error {
	list, err := f.starts(device)
	if err != nil {
		return err
	}
	if list != nil {
		return launch(ctx, list)
	}
	g, err := f.join(device)
	if err != nil {
		return err
	}
	return with(g, func() error { return run(g) })
}

// starts lists the GPUs of the ranks that this program is to start itself for a device of a name, nil for none.
func (f *ranksFlags) starts(device string) ([]string, error) {
	if !several(device) || f.distributed == "off" {
		return nil, nil
	}
	if w, err := f.launched(); err != nil || w.Launcher != "" {
		return nil, err
	}
	list, err := each(device)
	if err != nil || len(list) == 1 {
		return nil, err
	}
	return list, nil
}

// ownDevice is the device of this rank.
func ownDevice(device string, g *ranks.Group) (string, error) {
	w := g.World()
	if device == "auto" && !g.Single() {
		device = map[string]string{"mpi": "cpu", "nccl": "cuda"}[w.Engine]
	}
	switch {
	case several(device):
		list, err := each(device)
		switch {
		case err != nil:
			return "", err
		case w.Launcher == ranks.Own && len(list) != g.Size():
			return "", fmt.Errorf("device %s is %d GPUs for %d ranks", device, len(list), g.Size())
		case w.Launcher == ranks.Own:
			return list[g.Rank()], nil
		case g.Single() && len(list) == 1:
			return list[0], nil
		case g.Single():
			return "", fmt.Errorf("device %s takes a process for each of %d GPUs: without --distributed off they are started", device, len(list))
		}
		return "", fmt.Errorf("device %s starts a process for each GPU, and %s has started them: use --device cuda", device, w.Launcher)
	case g.Single() || device != "cuda":
		return device, nil
	}
	all, err := cuda.Devices()
	if err != nil {
		return "", err
	}
	local := w.Local
	if local < 0 {
		local = g.Place(g.Rank()).Local
	}
	switch {
	case len(all) == 1 && g.Locals() > 1:
		local = 0 // the launcher has each see its own; NCCL refuses one that two have
	case local >= len(all):
		return "", fmt.Errorf("%s is number %d on its host, which has %s: start a rank a GPU", g.Name(g.Rank()), local+1, text.Count(len(all), "GPU"))
	}
	return fmt.Sprintf("cuda:%d", local), nil
}

// joinGPUs makes the devices of ranks work together, where they are GPUs.
func joinGPUs(g *ranks.Group, dev device.Device, precision string) error {
	if g.Single() {
		return nil
	}
	if dev.Name() != "cuda" {
		if precision == "bfloat16" {
			return fmt.Errorf("--comm-precision %s is for GPUs", precision)
		}
		return nil
	}
	id := make([]byte, 128)
	var err error
	if g.First() {
		id, err = cuda.NewRanksID()
	}
	if err = g.Together(err); err != nil {
		return err
	}
	if err := g.Broadcast(id, 0); err != nil {
		return err
	}
	g.At(ranks.At{What: "the meeting of the GPUs"})
	name, err := cuda.JoinRanks(dev, cuda.RanksOptions{ID: id, Rank: g.Rank(), Size: g.Size(), Narrow: precision == "bfloat16", Timeout: g.Timeout(), Failed: func(err error) {
		if errors.Is(err, cuda.ErrOverdue) {
			err = nil
		} else {
			time.Sleep(time.Second) // what has started the ranks may know more of one that has ended
		}
		g.Watch("work of the GPUs", err)
	}})
	if err = g.Together(err); err == nil {
		g.Beside(name)
	}
	return err
}

// joined is this rank's device, which was opened, or not, once it works together with those of the others. Where one could not be opened, none is.
func joined(g *ranks.Group, dev device.Device, err error, precision string) (device.Device, error) {
	if err = g.Together(err); err == nil && dev != nil {
		err = joinGPUs(g, dev, precision)
	}
	if err != nil && dev != nil {
		err, dev = closed(err, dev.Close()), nil
	}
	return dev, err
}

// errQuiet is an error of all ranks that another has said.
var errQuiet = errors.New("said by another rank")

// with runs f on a rank. An error that the others do not know of ends them, too.
func with(g *ranks.Group, f func() error) error {
	err := f()
	if g == nil {
		return err
	}
	if err != nil && !train.Common(err) && !errors.Is(err, cli.ErrStopped) {
		g.Abort(err)
	}
	if e := g.Close(); err == nil {
		return e
	}
	if !g.First() && !errors.Is(err, cli.ErrStopped) {
		return errQuiet
	}
	return err
}

// watchParent ends this process with the one that has started it: that holds the other end of a pipe.
func watchParent() {
	pipe := os.NewFile(parentPipe, "parent")
	go func() {
		io.Copy(io.Discard, pipe)
		os.Exit(1)
	}()
}
