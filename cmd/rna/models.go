package main

import (
	"fmt"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"onlinerna/internal/text"
	"onlinerna/nn"
)

func newModels() *cobra.Command {
	return &cobra.Command{
		Use:   "models",
		Short: "List the models",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "NAME\tPARAMETERS\tINPUT\tCLASSES\tWHAT")
			var references []string
			for _, a := range nn.Architectures() {
				m, err := nn.Build(a.Name, nn.Config{Batch: 1, Mode: nn.Eval})
				if err != nil {
					return err
				}
				fmt.Fprintf(w, "%s\t%s\t%d×%d×%d\t%d\t%s\n", a.Name, text.Thousands(m.NumParams()), a.Size, a.Size, a.Channels, a.Classes,
					text.WrapTo(text.Columns-43, a.Summary, "\t\t\t\t")) // 43: of the other columns
				if !slices.Contains(references, a.Reference) {
					references = append(references, a.Reference)
				}
			}
			if err := w.Flush(); err != nil {
				return err
			}
			for _, r := range references {
				fmt.Fprintf(cmd.OutOrStdout(), "\n%s\n", text.Wrap(r, "  "))
			}
			return nil
		},
	}
}

// modelNames lists the models for completion.
func modelNames() (names []string) {
	for _, a := range nn.Architectures() {
		names = append(names, a.Name)
	}
	return names
}

// complete has the shell complete the values of options.
func complete(cmd *cobra.Command, values map[string][]string) {
	for name, list := range values {
		// The error says that there is no such option: the commands' tests find that.
		if err := cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp)); err != nil {
			panic(err)
		}
	}
}
