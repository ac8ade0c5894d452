package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// ValuesKey is the annotation of a flag with the values that the shell completes.
const ValuesKey = "values"

// Values makes the shell complete the value of one of the group's options.
func (g Group) Values(name string, list ...string) { annotate(g.Lookup(name), ValuesKey, list...) }

// Words returns names of a string type as the shell completes them.
func Words[T ~string](list []T) (all []string) {
	for _, v := range list {
		all = append(all, string(v))
	}
	return all
}

// CompleteAll makes the shell complete the values of all options below root: those that the option's definition lists,
// folders for options that take one, otherwise files. Commands without arguments complete none.
func CompleteAll(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		CompleteAll(cmd)
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if complete := completionOf(f); complete != nil {
				cmd.RegisterFlagCompletionFunc(f.Name, complete) // the flag is there
			}
		})
		if cmd.ValidArgsFunction == nil && cmd.Args != nil && cmd.Args(cmd, []string{"x"}) != nil {
			cmd.ValidArgsFunction = cobra.NoFileCompletions
		}
	}
}

// completionOf returns the completion of an option's value, nil for the shell's own.
func completionOf(f *pflag.Flag) cobra.CompletionFunc {
	kind, _ := pflag.UnquoteUsage(f)
	list := f.Annotations[ValuesKey]
	switch {
	case list != nil && strings.HasSuffix(f.Value.Type(), "Slice"):
		return func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
			return listed(list, typed), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		}
	case kind == "folder" || kind == "place":
		return func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		}
	case list != nil:
		return cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp)
	case kind != "file" && kind != "path" && f.Value.Type() != "bool":
		return cobra.NoFileCompletions
	}
	return nil
}

// listed returns the values of list after those already typed, separated by commas.
func listed(list []string, typed string) (all []string) {
	before := typed[:strings.LastIndex(typed, ",")+1]
	for _, v := range list {
		if !slices.Contains(strings.Split(before, ","), v) {
			all = append(all, before+v)
		}
	}
	return all
}
