package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"onlinerna/cmd/internal/cli"
	"onlinerna/internal/files"
	"onlinerna/internal/text"
	"onlinerna/train/evaluate"
	"onlinerna/train/statedict"
)

// keyHelp describes --key.
var keyHelp = optionHelp("key")

func newConvert() *cobra.Command {
	key, to := "", ""
	cmd := &cobra.Command{
		Use:   "convert FILE OUT [options]",
		Short: "Convert weights between safetensors and PyTorch's files",
		Long: `Convert weights from safetensors, or from a file of torch.save (a state dict, or a training script's checkpoint
that contains one), to safetensors, .pt or .pth. Values keep their bits; prefixes such as "module." are removed. PyTorch
loads the output by torch.load(OUT, weights_only=True). The folder of a run stands for its best weights.`,
		Example: `  rna convert checkpoint.pth resnet50.safetensors --key model_ema
  rna convert runs/fine best.pt`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && to != "" {
				args = append(args, to)
			} else if to != "" {
				return cli.Usage(cmd, fmt.Errorf("--out goes with one file, the input"))
			}
			if len(args) != 2 {
				return cli.Usage(cmd, fmt.Errorf("want two files: the input and the output"))
			}
			return convert(cmd.Context(), args[0], args[1], key, cmd.OutOrStdout())
		},
	}
	o := cli.NewGroup("Options")
	o.StringVarP(&to, "out", "o", "", "`file` to write, in place of OUT")
	o.StringVar(&key, "key", "", keyHelp)
	cli.AddGroups(cmd, o)
	return cmd
}

func convert(ctx context.Context, from, to, key string, out io.Writer) error {
	list, _, err := evaluate.Expand([]string{from}, false, out)
	if err != nil {
		return err
	}
	from = list[0]
	if files.Same(from, to) {
		return fmt.Errorf("%s is both read and written: name another output", from)
	}
	if strings.EqualFold(filepath.Ext(to), ".onnx") {
		return fmt.Errorf("%s: rna export writes ONNX, the net with its weights", to)
	}
	f, err := statedict.Open(from, key)
	if err != nil {
		return err
	}
	defer f.Close()
	if found := f.Found(); found != "" {
		fmt.Fprintln(out, found)
	}
	if _, what := f.Contents(); what != "" {
		fmt.Fprintf(out, "%s %s\n", from, what)
	}
	if err := statedict.ConvertWith(to, f, func(int64) error { return ctx.Err() }); err != nil {
		return cli.Interrupted(ctx, err)
	}
	_, err = fmt.Fprintf(out, "%s: %s\n", to, text.Count(len(f.Tensors), "tensor"))
	return err
}
