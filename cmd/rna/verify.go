package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"onlinerna/cmd/internal/cli"
	"onlinerna/internal/terminal"
	"onlinerna/train"
)

func newVerify() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "verify RUN|FILE…",
		Short: "Compare runs and weights with their checksums",
		Long: `Read checkpoints and weights completely and compare them with their checksums. RUN is the folder of a run, with
its checkpoints, weights, config.json, metrics.jsonl and sessions.jsonl, or a folder of runs. FILE contains weights:
safetensors files of rna have checksums, and so do zip files of torch.save. In folders, files named .safetensors, .pt,
.pth, .pth.tar, .ckpt and pytorch_model*.bin are read. Damage makes the exit status 1.`,
		Example: `  rna verify runs/20260101-120000-resnet20
  rna verify runs/a/final.safetensors resnet50.pth`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Usage(cmd, fmt.Errorf("no files: name folders of runs, or files of weights"))
			}
			return verify(args, cmd.OutOrStdout())
		},
	}
	cli.AddGroups(cmd)
	return cmd
}

func verify(paths []string, out io.Writer) error {
	damaged, total := 0, 0
	for _, path := range paths {
		list, err := train.Verify(path)
		if err != nil {
			return err
		}
		for _, v := range list {
			total++
			state := "whole"
			switch {
			case v.Err != nil:
				damaged++
				state = "DAMAGED"
			case v.Unread != "":
				if state = "not read as weights: "; v.Sums {
					state = "whole, but " + state
				}
				state += strings.TrimPrefix(v.Unread, v.Path+": ")
			case !v.Sums:
				state = "read; it has no checksums"
			case v.Step > 0 || v.Epoch > 0:
				state += fmt.Sprintf(", after step %d (%s of epoch %d), by %s", v.Step, batches(v.Batch), v.Epoch, v.Program)
			}
			fmt.Fprintln(out, terminal.Wrap(out, fmt.Sprintf("%s: %s", v.Path, state), "  "))
			if v.Err != nil {
				fmt.Fprintln(out, terminal.Wrap(out, "  "+v.Err.Error(), "  "))
			}
		}
	}
	if damaged > 0 {
		return fmt.Errorf("%d of %d damaged", damaged, total)
	}
	return nil
}

func batches(n int) string {
	if n == 1 {
		return "1 batch"
	}
	return fmt.Sprintf("%d batches", n)
}
