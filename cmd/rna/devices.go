package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"onlinerna/cuda"
	"onlinerna/nn/device/cpu"
)

func newDevices() *cobra.Command {
	return &cobra.Command{
		Use:   "devices",
		Short: "Show the processor, the GPUs and their libraries",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, err := cpu.New(cpu.Options{})
			if err != nil {
				return err
			}
			defer d.Close()
			fmt.Fprintf(cmd.OutOrStdout(), "%-15s%d threads, kernels for %s\n", "CPU", d.Threads(), d.Level())
			return cuda.Look().Print(cmd.OutOrStdout())
		},
	}
}
