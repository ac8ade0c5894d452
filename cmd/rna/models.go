package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"onlinerna/nn"
)

func newModels() *cobra.Command {
	return &cobra.Command{
		Use:   "models",
		Short: "List the models",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "NAME\tPARAMETERS\tINPUT\tCLASSES\tWHAT\tREFERENCE")
			for _, a := range nn.Architectures() {
				m, err := nn.Build(a.Name, nn.Config{Batch: 1, Mode: nn.Eval})
				if err != nil {
					return err
				}
				fmt.Fprintf(w, "%s\t%s\t%d×%d×%d\t%d\t%s\t%s\n", a.Name, thousands(m.NumParams()), a.Size, a.Size, a.Channels, a.Classes, a.Summary, a.Reference)
			}
			return w.Flush()
		},
	}
}

// thousands writes 25557032 as 25,557,032.
func thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
