package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"onlinerna/cmd/internal/cli"
	"onlinerna/cuda"
	"onlinerna/internal/files"
	"onlinerna/internal/simd"
	"onlinerna/nn/device/cpu"
)

func newDevices() *cobra.Command {
	var properties string
	var out cli.JSON
	cmd := &cobra.Command{
		Use:   "devices",
		Short: "Show the processor, the GPUs and their libraries",
		Args:  cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, err := cpu.New(cpu.Options{})
			if err != nil {
				return err
			}
			defer d.Close()
			r := cuda.Look()
			r.Try()
			processor := map[string]any{"threads": d.Threads(), "level": d.Level()}
			if why := simd.Refused(); why != nil {
				processor["refused"] = why.Error()
			}
			err = out.Write(cmd.OutOrStdout(), map[string]any{"cpu": processor, "cuda": r}, func(w io.Writer) error {
				fmt.Fprintf(w, "%-15s%d threads, kernels for %s\n", "CPU", d.Threads(), simd.Summary())
				return r.Print(w)
			})
			if err != nil || properties == "" {
				return err
			}
			text, err := cuda.Properties(0)
			if err != nil {
				return err
			}
			return files.WriteTo(properties, func(w io.Writer) error { _, err := io.WriteString(w, text+"\n"); return err })
		},
	}
	g := cli.NewGroup("Options")
	g.StringVar(&properties, "properties", "", "write cuDNN's properties of the first GPU to this `file` as JSON, to "+
		"plan for it elsewhere")
	out.Add(g)
	cli.AddGroups(cmd, g)
	return cmd
}
