package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"

	"onlinerna/internal/terminal"
	"onlinerna/train"
)

// follow sets the options of the recipe that the command line does not, and prints all.
func (f *trainFlags) follow(set *pflag.FlagSet, w io.Writer, first bool) error {
	r, err := train.FindRecipe(f.recipe)
	if err != nil {
		return err
	}
	said := map[string]bool{}
	set.Visit(func(g *pflag.Flag) { said[g.Name] = true })
	if said["batch"] && !said["accumulate"] {
		said["accumulate"] = true // the recipe's goes with its batch
	}
	words := []string{"Recipe " + r.Name + ":"}
	for _, o := range r.Options {
		value := o.Value
		if said[o.Name] {
			value = set.Lookup(o.Name).Value.String()
			if o.Name == "accumulate" && !set.Changed(o.Name) {
				continue
			}
		} else if err := set.Set(o.Name, o.Value); err != nil {
			return fmt.Errorf("recipe %s: --%s %s: %w", r.Name, o.Name, o.Value, err)
		}
		words = append(words, "--"+o.Name+"\u00a0"+value)
	}
	if !first {
		return nil
	}
	fmt.Fprintln(w, terminal.Wrap(w, strings.Join(words, " "), "  "))
	fmt.Fprintln(w, terminal.Wrap(w, "From "+r.Source, "  "))
	return nil
}
