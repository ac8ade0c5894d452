package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"onlinerna/internal/terminal"
	"onlinerna/train"
	"onlinerna/train/option"
	"onlinerna/train/recipe"
)

// tellRecipe prints the options of the recipe, with the command line's values for overridden ones.
func (f *trainFlags) tellRecipe(w io.Writer) {
	r, err := recipe.Find(f.recipe)
	var own train.Spec
	if err != nil || train.Options().Apply(&own, r.Settings...) != nil {
		return // build has reported the error
	}
	words := []string{"Recipe " + r.Name + ":"}
	for _, x := range r.Settings {
		o := train.Options().Find(x.Name)
		if i := slices.IndexFunc(f.said, func(s option.Setting) bool { return s.Name == x.Name }); i >= 0 {
			x = f.said[i]
		} else if o.IsSet(&own) && !o.IsSet(&f.Spec) { // another option clears it, as --batch the accumulation
			continue
		}
		between := "\u00a0"
		if o.Type() == "bool" { // a switch takes no word behind it
			between = "="
		}
		words = append(words, "--"+x.Name+between+x.String())
	}
	fmt.Fprintln(w, terminal.Wrap(w, strings.Join(words, " "), "  "))
	fmt.Fprintln(w, terminal.Wrap(w, "From "+r.Source, "  "))
	if r.Lacks != "" {
		fmt.Fprintln(w, terminal.Wrap(w, "Without: "+r.Lacks, "  "))
	}
	if f.Model != "" && !r.For(f.Model) {
		fmt.Fprintf(w, "It is a recipe of other nets than %s.\n", f.Model)
	}
}
