package launch

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"onlinerna/internal/text"
	"onlinerna/nn/device"
	"onlinerna/train/ranks"
)

// kindFor is the kind of device for the ranks of a launcher: under MPI a device that ranks can share, else one device a
// rank.
func kindFor(w ranks.World) string {
	kinds := device.Preferred()
	if i := slices.IndexFunc(kinds,
		func(kind string) bool { return (device.Of(kind).Several == nil) == (w.Engine == "mpi") }); i >= 0 {
		return kinds[i]
	}
	return ""
}

// Several reports whether a name means one device for each of several ranks, which this program starts itself.
func Several(name string) bool {
	_, unit := device.Parse(name)
	return device.Of(name).Several != nil && (unit == "all" || strings.Contains(unit, ","))
}

// each lists the devices of such a name.
func each(name string) ([]string, error) {
	kind, units := device.Parse(name)
	list, err := device.Of(name).Several(units)
	preferred := device.Preferred()
	last := preferred[len(preferred)-1]
	switch {
	case err != nil && units == "all":
		return nil, fmt.Errorf("device %s: %w; or use --device %s", name, err, last)
	case err != nil:
		return nil, err
	case len(list) == 0:
		return nil, fmt.Errorf("device %s: there is no GPU: use --device %s", name, last)
	}
	for i, unit := range list {
		list[i] = kind + ":" + unit
	}
	return list, nil
}

// Share is the device of the i-th of n runs, from 0, that train at once in this process on the devices of a name: a name
// without a unit stands for all of its kind if there are several runs.
func Share(name string, i, n int) (string, error) {
	if kind, unit := device.Parse(name); n > 1 && unit == "" && device.Of(name).Several != nil {
		name = kind + ":all"
	}
	if !Several(name) {
		return name, nil
	}
	list, err := each(name)
	if err != nil {
		return "", err
	}
	return list[i%len(list)], nil
}

// OwnDevice is this rank's device among those of a name.
func OwnDevice(name string, g *ranks.Group) (string, error) {
	w := g.World()
	if name == "auto" && !g.Single() {
		name = kindFor(w)
	}
	switch {
	case Several(name):
		list, err := each(name)
		switch {
		case err != nil:
			return "", err
		case w.Launcher == ranks.Own && len(list) != g.Size():
			return "", fmt.Errorf("device %s is %d GPUs for %d ranks", name, len(list), g.Size())
		case w.Launcher == ranks.Own:
			return list[g.Rank()], nil
		case g.Single() && len(list) == 1:
			return list[0], nil
		case g.Single():
			return "", fmt.Errorf("device %s takes a process for each of %d GPUs: without --distributed off they are started",
				name, len(list))
		}
		kind, _ := device.Parse(name)
		return "", fmt.Errorf("device %s starts a process for each GPU, and %s has started them: use --device %s", name,
			w.Launcher, kind)
	}
	kind, unit := device.Parse(name)
	d := device.Of(name)
	if g.Single() || unit != "" || d.Several == nil {
		return name, nil
	}
	all, err := d.Several("all")
	if err != nil {
		return "", err
	}
	local := w.Local
	if local < 0 {
		local = g.Place(g.Rank()).Local
	}
	switch {
	case len(all) == 1 && g.Locals() > 1:
		local = 0 // the launcher shows each rank only its own GPU; NCCL refuses a GPU that two ranks share
	case local >= len(all):
		return "", fmt.Errorf("%s is number %d on its host, which has %s: start a rank a GPU", g.Name(g.Rank()), local+1,
			text.Count(len(all), "GPU"))
	}
	return kind + ":" + all[local], nil
}

// join connects the ranks' devices if the devices sum gradients themselves.
func join(g *ranks.Group, dev device.Device, precision string) error {
	if g.Single() {
		return nil
	}
	d, ok := device.As[device.Joining](dev)
	if !ok {
		if precision == "bfloat16" {
			return fmt.Errorf("--comm-precision %s is for GPUs", precision)
		}
		return nil
	}
	var id device.RanksID
	var err error
	if g.First() {
		id, err = d.NewRanksID()
	}
	if err = g.Together(err); err != nil {
		return err
	}
	if err := g.Broadcast(id[:], 0); err != nil {
		return err
	}
	g.At(ranks.At{What: "the meeting of the GPUs"})
	name, err := d.JoinRanks(device.RanksOptions{ID: id, Rank: g.Rank(), Size: g.Size(),
		Narrow: precision == "bfloat16", Timeout: g.Timeout(), Failed: func(err error) {
			if errors.Is(err, device.ErrOverdue) {
				err = nil
			} else {
				time.Sleep(time.Second) // the launcher may know more about a rank that has ended
			}
			g.Watch("work of the GPUs", err)
		}})
	if err = g.Together(err); err == nil {
		g.Beside(name)
	}
	return err
}

// Joined connects this rank's device, opened with err, to those of the other ranks. If any rank failed to open its
// device, all fail. With the precision bfloat16 the gradients travel as bfloat16.
func Joined(g *ranks.Group, dev device.Device, err error, precision string) (device.Device, error) {
	if err = g.Together(err); err == nil && dev != nil {
		err = join(g, dev, precision)
	}
	if err != nil && dev != nil {
		err, dev = device.Closed(err, dev.Close()), nil
	}
	return dev, err
}
