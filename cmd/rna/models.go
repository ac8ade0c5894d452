package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"onlinerna/internal/cli"
	"onlinerna/internal/terminal"
	"onlinerna/internal/text"
	"onlinerna/nn"
)

func newModels() *cobra.Command {
	return &cobra.Command{
		Use:   "models",
		Short: "List the models",
		Args:  cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := cmd.OutOrStdout()
			rows := [][]string{{"NAME", "PARAMETERS", "INPUT", "CLASSES", "WHAT"}}
			room := terminal.Columns(out)
			if room > 0 {
				room = max(room-45, 12) // 45: of the other columns
			}
			var references []string
			for _, a := range nn.Architectures() {
				m, err := nn.Build(a.Name, nn.Config{Batch: 1, Mode: nn.Eval})
				if err != nil {
					return err
				}
				row := []string{a.Name, text.Thousands(m.NumParams()), fmt.Sprintf("%d×%d×%d", a.Size, a.Size, a.Channels), fmt.Sprint(a.Classes), ""}
				for line := range strings.Lines(text.WrapTo(room, a.Summary, "")) {
					row[4] = strings.TrimSpace(line)
					rows = append(rows, row)
					row = make([]string, len(row))
				}
				if !slices.Contains(references, a.Reference) {
					references = append(references, a.Reference)
				}
			}
			page := terminal.NewPage(out)
			page.LeftTable(rows)
			for _, r := range references {
				page.WriteString("\n" + r + "\n")
			}
			return page.Flush(out)
		},
	}
}
