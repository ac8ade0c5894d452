package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"onlinerna/internal/cli"
	"onlinerna/train/bench"
)

func newBenchScale() *cobra.Command {
	c, out := bench.Cluster{}, cli.JSON{}
	var (
		model, gradients               string
		jitter, link, network, latency float64
		most, images, epochs           int
	)
	cmd := &cobra.Command{
		Use:   "scale [options]",
		Short: "Predict how training scales from one device to many",
		Long: `Predict steps of 1, 2, 4 … devices that train as one, from the speed of one: the slowest device's time, and what of the sums of gradients,
in buckets that begin as the backward pass makes them, is not done when that ends. Nothing is measured here: the rate is that of
rna bench train, the bandwidths are those of rna bench comm or nccl-tests.`,
		Example: `  rna bench scale --rate 3000 --batch 256
  rna bench scale --rate 25 --batch 32 --node 1 --network 3 --gradients float32`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			fail := func(format string, args ...any) error {
				return cli.Usage(cmd, fmt.Errorf(format, args...))
			}
			switch gradients {
			case "float32":
				c.Element = 4
			case "bfloat16":
				c.Element = 2
			default:
				return fail("--gradients %s: float32 or bfloat16", gradients)
			}
			if most < 1 || images < 1 || epochs < 1 {
				return fail("--devices %d, --images %d, --epochs %d: at least 1", most, images, epochs)
			}
			var err error
			if c.Buckets, err = bench.BucketsOf(model); err != nil {
				return err
			}
			c.Jitter, c.Link, c.Network, c.Latency = jitter/100, link*1e9, network*1e9, latency/1e6
			var list []bench.Prediction
			for n := 1; n <= most; n *= 2 {
				p, err := c.Predict(n)
				if err != nil {
					return fail("%w", err)
				}
				list = append(list, p)
			}
			return out.Write(cmd.OutOrStdout(), list, func(w io.Writer) error { return bench.WriteScale(w, &c, list, images, epochs) })
		},
	}
	w := cli.NewGroup("One device")
	w.StringVar(&model, "model", "resnet50", "model, see rna models")
	w.Values("model", modelNames()...)
	w.Float64Var(&c.Rate, "rate", 2500, "`images` a second")
	w.IntVar(&c.Batch, "batch", 256, "`images` of a step")
	w.Float64Var(&jitter, "jitter", 1, "standard deviation of a step's time, in `percent`")
	n := cli.NewGroup("Many")
	n.IntVar(&most, "devices", 4096, "at most")
	n.IntVar(&c.Node, "node", 8, "devices of a node")
	n.Float64Var(&link, "link", 200, "`GB/s` between devices of a node, of each")
	n.Float64Var(&network, "network", 25, "`GB/s` between nodes, of each device")
	n.Float64Var(&latency, "latency", 10, "of the network, in `µs`")
	n.StringVar(&gradients, "gradients", "float32", "type in which they are sent: float32, bfloat16")
	n.Values("gradients", "float32", "bfloat16")
	n.BoolVar(&c.Serial, "serial", false, "sums begin behind the backward pass")
	o := cli.NewGroup("Output")
	o.IntVar(&images, "images", 1281167, "of an epoch")
	o.IntVar(&epochs, "epochs", 90, "of a training")
	out.Add(o)
	cli.AddGroups(cmd, w, n, o)
	return cmd
}
