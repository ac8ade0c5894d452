package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"onlinerna/internal/terminal"
	"onlinerna/internal/text"
)

// Group is a set of flags that belong together in the help.
type Group struct {
	Title string
	*pflag.FlagSet
}

// NewGroup is an empty group.
func NewGroup(title string) Group {
	fs := pflag.NewFlagSet(title, pflag.ContinueOnError)
	fs.SortFlags = false
	return Group{title, fs}
}

// groupKey is the annotation of a flag that names its group.
const groupKey = "group"

// AddGroups gives cmd the flags of all groups, which help and manual pages show by group, and --help.
func AddGroups(cmd *cobra.Command, groups ...Group) {
	cmd.DisableFlagsInUseLine = true
	if len(groups) == 0 {
		groups = []Group{NewGroup("Options")}
	}
	groups[len(groups)-1].BoolP("help", "h", false, "this help")
	shortOutput(groups)
	cmd.Flags().SortFlags = false
	for _, g := range groups {
		g.VisitAll(func(f *pflag.Flag) { annotate(f, groupKey, g.Title) })
		cmd.Flags().AddFlagSet(g.FlagSet)
	}
}

func annotate(f *pflag.Flag, key string, values ...string) {
	if f.Annotations == nil {
		f.Annotations = map[string][]string{}
	}
	f.Annotations[key] = values
}

// groupsOf are the flags of cmd by group, in the order in which they were added.
func groupsOf(cmd *cobra.Command) (groups []Group) {
	cmd.InitDefaultHelpFlag()
	cmd.InitDefaultVersionFlag()
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		title := "Options"
		if t := f.Annotations[groupKey]; t != nil {
			title = t[0]
		}
		if f.Name == "help" {
			f.Usage = "this help"
		}
		for _, g := range groups {
			if g.Title == title {
				g.AddFlag(f)
				return
			}
		}
		groups = append(groups, NewGroup(title))
		groups[len(groups)-1].AddFlag(f)
	})
	return groups
}

// Help prints the whole help of cmd, as wide as the terminal.
func Help(cmd *cobra.Command, _ []string) {
	long := cmd.Long
	if long == "" {
		long = cmd.Short
	}
	out := cmd.OutOrStdout()
	fmt.Fprintf(out, "%s\n\n", text.Paragraphs(terminal.HelpColumns(out), strings.TrimSpace(long)))
	cmd.SetOut(out)
	cmd.Usage()
}

// UsageOf prints the usage of cmd with its commands and options.
func UsageOf(cmd *cobra.Command) error {
	out := cmd.OutOrStderr()
	columns, style := terminal.HelpColumns(out), terminal.StyleOf(out)
	var b strings.Builder
	title := func(t string) { b.WriteString("\n" + style.Bold(t+":") + "\n") }
	fmt.Fprintf(&b, "%s\n  %s\n", style.Bold("Usage:"), text.WrapTo(columns-2, useLine(cmd), "    "))
	if cmd.HasExample() {
		title("Examples")
		b.WriteString(cmd.Example + "\n")
	}
	if cmd.HasAvailableSubCommands() {
		title("Commands")
		width := 0
		for _, c := range shown(cmd) {
			width = max(width, len(c.Name()))
		}
		for _, c := range shown(cmd) {
			indent := strings.Repeat(" ", width+4)
			fmt.Fprintf(&b, "  %-*s  %s\n", width, c.Name(), text.WrapTo(columns-len(indent), c.Short, indent))
		}
	}
	for _, g := range groupsOf(cmd) {
		if g.HasAvailableFlags() { // others are hidden
			title(g.Title)
			b.WriteString(g.FlagUsagesWrapped(columns))
		}
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\n%s\n", text.WrapTo(columns, fmt.Sprintf("%q tells more of a command.",
			cmd.CommandPath()+" COMMAND --help"), ""))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// shown are the commands below cmd that help names.
func shown(cmd *cobra.Command) (list []*cobra.Command) {
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() || c.Name() == "help" {
			list = append(list, c)
		}
	}
	return list
}

// useLine is the usage of cmd in a line.
func useLine(cmd *cobra.Command) string {
	if cmd.HasAvailableSubCommands() {
		return cmd.CommandPath() + " COMMAND"
	}
	return strings.Replace(cmd.UseLine(), "[flags]", "[options]", 1)
}

// NewHelp is the command that prints the help of others. Cobra's own takes unknown commands for the root.
func NewHelp() *cobra.Command {
	return &cobra.Command{
		Use:                   "help [COMMAND]",
		Short:                 "Show the help of a command",
		DisableFlagsInUseLine: true,
		ValidArgsFunction: func(help *cobra.Command, args []string, _ string) (names []cobra.Completion,
			_ cobra.ShellCompDirective) {
			if cmd, rest, err := help.Root().Find(args); err == nil && len(rest) == 0 {
				for _, c := range shown(cmd) {
					names = append(names, cobra.CompletionWithDesc(c.Name(), c.Short))
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(help *cobra.Command, args []string) error {
			cmd, rest, err := help.Root().Find(args)
			if err == nil {
				err = UnknownCommand(cmd, rest)
			}
			if err != nil {
				return err
			}
			return cmd.Help()
		},
	}
}

// strictCompletion makes cobra's command completion reject unknown shells, which it takes for a call for help.
func strictCompletion(root *cobra.Command, args []string) {
	root.InitDefaultCompletionCmd(args...)
	cmd, _, err := root.Find([]string{"completion"})
	if err != nil || cmd == root {
		return
	}
	cmd.Args = UnknownCommand
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	for _, shell := range cmd.Commands() {
		shell.Args = NoArgs
	}
}
