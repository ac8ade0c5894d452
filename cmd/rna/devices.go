package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"onlinerna/cuda"
	"onlinerna/nn/device/cpu"
)

func newDevices() *cobra.Command {
	var properties string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "devices",
		Short: "Show the processor, the GPUs and their libraries",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, err := cpu.New(cpu.Options{})
			if err != nil {
				return err
			}
			defer d.Close()
			r := cuda.Look()
			r.Try()
			if asJSON {
				err = json.NewEncoder(cmd.OutOrStdout()).Encode(map[string]any{
					"cpu": map[string]any{"threads": d.Threads(), "level": d.Level()}, "cuda": r})
			} else {
				fmt.Fprintf(cmd.OutOrStdout(), "%-15s%d threads, kernels for %s\n", "CPU", d.Threads(), d.Level())
				err = r.Print(cmd.OutOrStdout())
			}
			if err != nil || properties == "" {
				return err
			}
			text, err := cuda.Properties(0)
			if err != nil {
				return err
			}
			return writeFile(properties, func(w io.Writer) error { _, err := io.WriteString(w, text+"\n"); return err })
		},
	}
	g := newGroup("Options")
	g.StringVar(&properties, "properties", "", "write what cuDNN says of the first GPU to this `file`, as JSON: plans for it can then be made elsewhere")
	g.BoolVar(&asJSON, "json", false, "print JSON: memory in bytes, clocks in MHz, power in W, errors as texts")
	g.BoolP("help", "h", false, "this help")
	addGroups(cmd, g)
	return cmd
}
