package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"onlinerna/cmd/internal/cli"
	"onlinerna/cuda"
	"onlinerna/internal/files"
	"onlinerna/nn/device"
	"onlinerna/train/bench"
)

type trafficFlags struct {
	bench.TrafficOptions
	card, device, precision, csv string
	json                         cli.JSON
	deterministic, layers        bool
}

func newBenchTraffic() *cobra.Command {
	f := &trafficFlags{}
	cmd := &cobra.Command{
		Use:   "traffic [options]",
		Short: "Compute the memory traffic of a training step on a GPU",
		Long: `Compute a training step's load on a GPU: launches, bytes read and written, products, and their least time by
the card's data sheet. The program plans the step as for the card, with the same groups, fusions, kernels and memory,
but computes nothing. It needs a build with GPU support, but no GPU and no library of NVIDIA. Of several equivalent
kernels it takes the one with the least time.

Each kernel counts the bytes that it reads and writes, as if there were no caches. A kernel takes 1.5 µs to start and
then the time of its bytes at the full bandwidth, of its products at the peak, or of its instructions, as counted from
NVIDIA's PTX, at four warps a multiprocessor and clock. A real card takes longer.

With --device cuda the card runs the steps, eagerly, and its clock times each kernel.`,
		Example: `  rna bench traffic --model resnet50 --batch 256
  rna bench traffic --device-name a100 --precision float16 --layers
  rna bench traffic --device cuda --csv traffic.csv`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	w := cli.NewGroup("Work")
	w.StringVar(&f.Model, "model", "resnet50", "model, see rna models")
	w.Values("model", modelNames()...)
	f.Batch = 256
	w.IntVar(&f.Batch, "batch", 256, "`images` a step")
	w.IntVar(&f.ImageSize, "image-size", 0, "height and width of an image (default: the model's)")
	w.IntVar(&f.Window, "window", 10, "snapshots that RNA keeps; 0: without RNA")
	r := cli.NewGroup("Run")
	r.StringVar(&f.card, "device-name", "h100", "card on paper: a100, h100, h200, b200, rtx4090")
	r.Values("device-name", "a100", "h100", "h200", "b200", "rtx4090")
	r.StringVar(&f.device, "device", "", "`device` that runs the steps, as cuda or cuda:1, in place of a card on paper")
	r.Values("device", deviceUnits(device.Preferred()[:1], false)...)
	r.StringVar(&f.precision, "precision", "bfloat16", precisionsHelp)
	r.Values("precision", precisionValues...)
	r.BoolVar(&f.deterministic, "deterministic", false, deterministicHelp)
	r.BoolVar(&f.layers, "layers", false, "a line for each piece of work")
	f.json.Add(r)
	r.StringVar(&f.csv, "csv", "", "write the pieces of work to this `file`")
	cli.AddGroups(cmd, w, r)
	return cmd
}

func (f *trafficFlags) run(ctx context.Context, out io.Writer) (err error) {
	dev, err := f.open()
	if err != nil {
		return err
	}
	defer func() { err = device.Closed(err, dev.Close()) }()
	t, err := bench.RunTraffic(ctx, dev, f.TrafficOptions)
	if err != nil {
		return err
	}
	if err := f.json.Write(out, t, func(w io.Writer) error { return t.WriteTable(w, f.layers) }); err != nil {
		return err
	}
	return files.WriteTo(f.csv, t.WriteCSV)
}

// open opens the paper card, or the device that runs the steps.
func (f *trafficFlags) open() (device.Device, error) {
	if f.device != "" {
		d, err := openDevice(f.device, deviceOptions{precision: f.precision, deterministic: f.deterministic, eager: true})
		if err != nil {
			return nil, err
		}
		if c, ok := device.As[device.Card](d); ok {
			f.Card = c.Card()
		}
		return d, nil
	}
	precision, err := cuda.ParsePrecision(f.precision)
	if err != nil {
		return nil, err
	}
	card, err := cuda.FindCard(f.card)
	if err != nil {
		return nil, err
	}
	d, err := cuda.OpenPaper(card, cuda.NetOptions{Precision: precision, Deterministic: f.deterministic})
	if err != nil {
		return nil, err
	}
	f.Card, f.Least = card.Name, d.Least
	return d, nil
}
