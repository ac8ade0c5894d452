package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"onlinerna/cmd/internal/cli"
	"onlinerna/nn/device"
	"onlinerna/train/bench"
	"onlinerna/train/ranks"
	"onlinerna/train/ranks/launch"
)

// commDevice opens this rank's device if it can sum vectors itself, and joins it with those of the others; nil means
// the host.
func commDevice(name string, g *ranks.Group) (device.Device, error) {
	var dev device.Device
	own, err := launch.OwnDevice(name, g)
	if err == nil && device.Of(own).Several != nil {
		dev, err = openDevice(own, deviceOptions{})
	}
	return launch.Joined(g, dev, err, "")
}

func newBenchComm() *cobra.Command {
	o := bench.CommOptions{}
	var (
		ranksOf launch.Options
		wanted  string
		out     cli.JSON
	)
	cmd := &cobra.Command{
		Use:   "comm [options]",
		Short: "Measure sums over ranks, as nccl-tests do",
		Long: `Measure sums over the ranks of a launcher for vectors of growing size: time, bandwidth and bus bandwidth, in
the columns of nccl-tests. Rounds alternate with the library's own blocking call. On GPUs NCCL adds up.`,
		Example: `  mpirun -n 4 rna bench comm
  rna bench comm --device cuda:all
  mpirun -n 2 rna bench comm --min 1000000 --max 100000000`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Min < 4 || o.Max < o.Min || o.Rounds < 1 {
				return cli.Usage(cmd, fmt.Errorf("--min %d, --max %d, --rounds %d: at least 4 bytes, no less, and 1", o.Min, o.Max,
					o.Rounds))
			}
			return ranksOf.Run(cmd.Context(), wanted, func(g *ranks.Group) (err error) {
				if o.Ranks, o.Device = g, nil; !g.Single() {
					o.Device, err = commDevice(wanted, g)
				}
				if err != nil {
					return err
				}
				if o.Device != nil {
					defer func() { err = device.Closed(err, o.Device.Close()) }()
				}
				r, err := bench.RunComm(cmd.Context(), o)
				if err != nil || !g.First() {
					return err
				}
				return out.Write(cmd.OutOrStdout(), r, r.WriteTable)
			})
		},
	}
	s := cli.NewGroup("Options")
	s.IntVar(&o.Min, "min", 8, "`bytes` of the smallest vector; each size is four times the one before")
	s.IntVar(&o.Max, "max", 128<<20, "`bytes` of the largest vector at most")
	s.IntVar(&o.Rounds, "rounds", 5, "rounds of the measurements")
	s.StringVar(&wanted, "device", "auto", "cpu: vectors in the host's memory; cuda, cuda:all, cuda:0,2: in the memory "+
		"of a GPU of each rank; auto: by the launcher, MPI or torchrun")
	s.Values("device", deviceValues...)
	addRanks(s, &ranksOf)
	out.Add(s)
	cli.AddGroups(cmd, s)
	return cmd
}
