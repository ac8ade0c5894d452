package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"onlinerna/cmd/internal/cli"
	"onlinerna/internal/files"
	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu"
	"onlinerna/nn/onnx"
	"onlinerna/train/evaluate"
	"onlinerna/train/network"
)

type exportFlags struct {
	evaluate.Options
	out string
}

func newExport() *cobra.Command {
	f := &exportFlags{}
	cmd := &cobra.Command{
		Use:   "export WEIGHTS -o NET.onnx [options]",
		Short: "Write a net with its weights as ONNX",
		Long: fmt.Sprintf(`Write a net with its weights as ONNX, opset %d, for other runtimes: the net as it evaluates.

Its input is "input": float32 [N,C,H,W], images in RGB with numbers from 0 to 1 (pixels over 255), resized and cropped
to the net's size. The graph itself subtracts the mean and divides by the standard deviation. Its output is "logits"
[N,K], before a softmax. Names of the classes and the size of the images are in the file's metadata.

WEIGHTS is a file, or the folder of a run: its best weights. Weights that rna wrote carry the model, the size and the
normalisation with them. For others name the model.`, onnx.Opset),
		Example: `  rna export runs/fine -o fine.onnx
  rna export runs/fine/best.safetensors -o fine.onnx
  rna export resnet50.pth --model resnet50 -o resnet50.onnx --batch 1`,
		RunE: func(cmd *cobra.Command, args []string) error {
			err := error(nil)
			switch {
			case len(args) != 1:
				err = errors.New("want one file of weights, or the folder of a run")
			case f.out == "":
				err = errors.New("--out is missing: the file to write, as net.onnx")
			}
			if err != nil {
				return cli.Usage(cmd, err)
			}
			f.Weights = args[0]
			return f.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o := cli.NewGroup("Output")
	o.StringVarP(&f.out, "out", "o", "", "ONNX `file` to write")
	o.Images(&f.Batch, "dynamic", 0, "batch", "`images` a run, or dynamic: any number")
	w := cli.NewGroup("Weights")
	w.StringVar(&f.Key, "key", "", keyHelp)
	w.StringVar(&f.Model, "model", "", "model (default: that of the file)")
	w.Values("model", modelNames()...)
	w.StringVar(&f.Classes, "classes", "", "`file` with the names of the classes by index, one a line (default: those "+
		"of the weights)")
	w.IntVar(&f.ImageSize, "image-size", 0, "height and width of the net's input (default: that of the weights, or of "+
		"the model)")
	w.Floats(&f.Mean, "mean", "mean of each channel: comma-separated `numbers`, for pixels from 0 to 1 (default: that "+
		"of the weights, or ImageNet's for its models)")
	w.Floats(&f.Std, "std", "standard deviation of each channel, as comma-separated `numbers`")
	cli.AddGroups(cmd, o, w)
	return cmd
}

func (f *exportFlags) run(ctx context.Context, out, log io.Writer) (err error) {
	file, meta, err := f.OpenWeights(log)
	if err != nil {
		return err
	}
	defer file.Close()
	m, outputs, channels, err := evaluate.NetOf(file, &meta)
	if err != nil {
		return err
	}
	if meta.Mean == nil || meta.Std == nil {
		if m.Config.Size <= evaluate.PhotoSize {
			return fmt.Errorf("%s does not say how images are normalised: name --mean and --std, as 0 and 1 for none", f.Weights)
		}
		profile, err := evaluate.PhotoProfile()
		if err != nil {
			return err
		}
		evaluate.Fill(&meta, profile)
	}
	net, err := f.open(ctx, meta, outputs, channels)
	if err != nil {
		return err
	}
	defer func() { err = device.Closed(err, errors.Join(net.Close(), net.Device.Close())) }()
	if err := net.CheckFinite(f.Weights, f.Key); err != nil {
		return err
	}
	err = files.WriteTo(f.out, func(w io.Writer) error { return net.WriteONNX(cli.Until(ctx, w), meta, f.Batch) })
	if err != nil {
		return cli.Interrupted(ctx, err)
	}
	c, batch := net.Model().Config, "dynamic"
	if f.Batch > 0 {
		batch = strconv.Itoa(f.Batch)
	}
	_, err = fmt.Fprintf(out, "%s: %s, input [%s,%d,%d,%d] from 0 to 1, logits [%[3]s,%[7]d]\n", f.out, meta.Model, batch,
		c.Channels, c.Size, c.Size, c.Classes)
	return err
}

// open makes the net on the CPU and loads the weights. That takes seconds for a large net and cannot be stopped: after
// an interruption open returns at once, and the work ends with the process.
func (f *exportFlags) open(ctx context.Context, meta network.Meta, outputs, channels int) (*network.Network, error) {
	var net *network.Network
	done := make(chan error, 1)
	go func() {
		dev, err := cpu.New(cpu.Options{})
		if err != nil {
			done <- err
			return
		}
		if net, err = network.Blank(dev, meta.Model, meta.Config(outputs, channels)); err == nil {
			if _, err = net.Load(f.Weights, network.LoadOptions{Key: f.Key}); err != nil {
				err = device.Closed(err, net.Close())
			}
		}
		if err != nil {
			err = device.Closed(err, dev.Close())
		}
		done <- err
	}()
	select {
	case err := <-done:
		return net, err
	case <-ctx.Done():
		return nil, cli.Interrupted(ctx, ctx.Err())
	}
}
