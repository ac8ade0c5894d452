package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"onlinerna/cmd/internal/cli"
	"onlinerna/internal/terminal"
	"onlinerna/internal/text"
	"onlinerna/train"
	"onlinerna/train/option"
)

//go:generate sh -c "go run . options --markdown > ../../docs/options.md"

func newOptions() *cobra.Command {
	var out cli.JSON
	var markdown bool
	cmd := &cobra.Command{
		Use:   "options [NAME...]",
		Short: "List the options of training, for command lines and files",
		Long: `List the options of training with their defaults and values. Their names are also the keys of files for
--config. With arguments, list only the options whose names contain one.`,
		Example: "  rna options\n  rna options lr schedule\n  rna options --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			rows := optionRows(args)
			if len(rows) == 0 {
				return cli.Usage(cmd, fmt.Errorf("no option has %s in its name", strings.Join(args, " or ")))
			}
			return out.Write(cmd.OutOrStdout(), rows, func(w io.Writer) error {
				if markdown {
					return optionsPage(w, rows)
				}
				return optionsText(w, rows)
			})
		},
	}
	g := cli.NewGroup("Options")
	out.Add(g)
	g.BoolVar(&markdown, "markdown", false, "print the page docs/options.md")
	cli.AddGroups(cmd, g)
	cmd.MarkFlagsMutuallyExclusive("json", "markdown")
	return cmd
}

// optionRow is an option of rna train. File reports whether files may set it.
type optionRow struct {
	option.Row
	File bool `json:"file"`
}

// optionRows lists the options, under their headings, whose names contain one of the words, or all options for no
// words.
func optionRows(words []string) (rows []optionRow) {
	var all []optionRow
	for _, r := range startOptions.Rows() {
		all = append(all, optionRow{Row: r})
	}
	for _, r := range train.Options().Rows() {
		all = append(all, optionRow{r, true})
	}
	for _, r := range processOptions.Rows() {
		all = append(all, optionRow{Row: r})
	}
	for _, title := range train.Options().Groups() {
		for _, r := range all {
			if r.Group == title && mentions(r.Name, words) {
				rows = append(rows, r)
			}
		}
	}
	return rows
}

func mentions(name string, words []string) bool {
	for _, w := range words {
		if strings.Contains(name, strings.ReplaceAll(strings.TrimLeft(w, "-"), "_", "-")) {
			return true
		}
	}
	return len(words) == 0
}

func optionsText(w io.Writer, rows []optionRow) error {
	const column = 22 // start of descriptions
	room := terminal.Columns(w)
	if room > 0 {
		room = max(room-column, column)
	}
	group := ""
	for _, r := range rows {
		if r.Group != group {
			if group != "" {
				fmt.Fprintln(w)
			}
			group = r.Group
			fmt.Fprintf(w, "%s:\n", group)
		}
		line := unquoted(r.Help)
		if r.Default != "" {
			line += " (default: " + r.Default + ")"
		}
		if len(r.Values) > 0 {
			line += " [" + strings.Join(r.Values, ", ") + "]"
		}
		line = text.WrapTo(room, line, strings.Repeat(" ", column))
		if _, err := fmt.Fprintf(w, "  %-*s%s\n", column-2, r.Name+" ", line); err != nil {
			return err
		}
	}
	return nil
}

// unquoted returns a help text without its quotes.
func unquoted(help string) string { return strings.ReplaceAll(help, "`", "") }

func optionsPage(w io.Writer, rows []optionRow) error {
	var b strings.Builder
	b.WriteString(strings.ReplaceAll(`# Options

This page lists all options of ~rna train~, with their defaults. Each is a flag of the command line, as ~--lr 0.02~,
and a key of files for ~--config~, as ~lr: 0.02~ in YAML or ~"lr": 0.02~ in JSON, where underscores may stand for
hyphens. The ~config.json~ of a run is such a file. Options marked † are of the command line alone. A run that
~--resume~ goes on with takes those marked ↻. ~rna options --markdown~ writes this page.
`, "~", "`"))
	group := ""
	for _, r := range rows {
		if r.Group != group {
			group = r.Group
			fmt.Fprintf(&b, "\n## %s\n\n| option | value | default | |\n|-|-|-|-|\n", group)
		}
		name := "`--" + r.Name + "`"
		if r.Short != "" {
			name += ", `-" + r.Short + "`"
		}
		if !r.File {
			name += " †"
		}
		if r.Resumable {
			name += " ↻"
		}
		value := r.Type
		if q := strings.Split(r.Help, "`"); len(q) == 3 {
			value = q[1]
		} else if len(r.Values) > 0 && r.Name != "model" {
			value = strings.Join(r.Values, ", ")
		}
		help := unquoted(r.Help)
		if first, _, _ := strings.Cut(help, " "); !slices.Contains(r.Values, strings.TrimRight(first, ":,")) {
			help = strings.ToUpper(help[:1]) + help[1:]
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", name, cell(value), cell(r.Default), cell(help))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// cell returns text for a cell of a Markdown table.
func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "*", `\*`, "<", "&lt;").Replace(s)
}
