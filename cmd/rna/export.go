package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"onlinerna/internal/cli"
	"onlinerna/internal/files"
	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu"
	"onlinerna/nn/onnx"
	"onlinerna/train/network"
)

type exportFlags struct {
	evalFlags
	out   string
	batch openBatch
}

func newExport() *cobra.Command {
	f := &exportFlags{}
	cmd := &cobra.Command{
		Use:   "export WEIGHTS -o NET.onnx [options]",
		Short: "Write a net with its weights as ONNX",
		Long: fmt.Sprintf(`Write a net with its weights as ONNX, opset %d, for other runtimes: the net as it evaluates.

Its input is "input": float32 [N,C,H,W], images in RGB with numbers from 0 to 1 (pixels over 255), resized and cropped to the
net's size. The graph itself subtracts the mean and divides by the standard deviation. Its output is "logits" [N,K], before
a softmax. Names of the classes and the size of the images are in the file's metadata.

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
			f.weights = args[0]
			return f.run(cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o := cli.NewGroup("Output")
	o.StringVarP(&f.out, "out", "o", "", "ONNX `file` to write")
	o.Var(&f.batch, "batch", "images a run, or dynamic: any number")
	o.Values("batch", "1", "dynamic")
	w := cli.NewGroup("Weights")
	w.StringVar(&f.key, "key", "", keyHelp)
	w.StringVar(&f.model, "model", "", "model (default: what the file says)")
	w.Values("model", modelNames()...)
	w.StringVar(&f.classesFile, "classes", "", "`file` with the names of the classes by index, one a line (default: what the weights say)")
	w.IntVar(&f.imageSize, "image-size", 0, "height and width of the net's input (default: what the weights say, or the model's)")
	w.Floats(&f.mean, "mean", "mean of each channel: comma-separated `numbers`, for pixels from 0 to 1 (default: what the weights say, or ImageNet's for its models)")
	w.Floats(&f.std, "std", "standard deviation of each channel, as comma-separated `numbers`")
	cli.AddGroups(cmd, o, w)
	return cmd
}

// openBatch is a number of images, 0 for any.
type openBatch int

// Type, String and Set are pflag.Value.
func (b *openBatch) Type() string { return "N" }

func (b *openBatch) String() string {
	if *b == 0 {
		return "dynamic"
	}
	return strconv.Itoa(int(*b))
}

func (b *openBatch) Set(s string) error {
	if s == "dynamic" {
		*b = 0
		return nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		return fmt.Errorf("%q is no number of images: want one from 1, or dynamic", s)
	}
	*b = openBatch(n)
	return nil
}

func (f *exportFlags) run(out, log io.Writer) (err error) {
	file, meta, err := f.openWeights(log)
	if err != nil {
		return err
	}
	defer file.Close()
	m, outputs, channels, err := netOf(file, &meta)
	if err != nil {
		return err
	}
	if meta.Mean == nil || meta.Std == nil {
		if m.Config.Size <= photoSize {
			return fmt.Errorf("%s does not say how images are normalised: name --mean and --std, as 0 and 1 for none", f.weights)
		}
		profile, err := photoProfile()
		if err != nil {
			return err
		}
		fill(&meta, profile)
	}
	dev, err := cpu.New(cpu.Options{})
	if err != nil {
		return err
	}
	defer func() { err = device.Closed(err, dev.Close()) }()
	net, err := network.New(dev, meta.Model, meta.Config(outputs, channels), 0)
	if err != nil {
		return err
	}
	defer func() { err = device.Closed(err, net.Close()) }()
	if _, err := net.Load(f.weights, network.LoadOptions{Key: f.key}); err != nil {
		return err
	}
	err = files.WriteTo(f.out, func(w io.Writer) error { return net.WriteONNX(w, meta, int(f.batch)) })
	if err != nil {
		return err
	}
	c := net.Model().Config
	_, err = fmt.Fprintf(out, "%s: %s, input [%v,%d,%d,%d] from 0 to 1, logits [%v,%d]\n", f.out, meta.Model, &f.batch, c.Channels, c.Size, c.Size, &f.batch, c.Classes)
	return err
}
