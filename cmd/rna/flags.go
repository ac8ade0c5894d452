package main

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"onlinerna/train"
	"onlinerna/train/option"
)

// flagValue is the flag of an option: it sets the value of s, and notes it in said.
type flagValue[S any] struct {
	o    *option.Option[S]
	s    *S
	said *[]option.Setting
	text string
}

// Set implements pflag.Value. A list that is given twice is one list.
func (v *flagValue[S]) Set(text string) error {
	if v.text != "" && v.o.Type() == "list" {
		text = v.text + "," + text
	}
	if err := v.o.Set(v.s, text); err != nil {
		return err.(*option.Error).Err // pflag says the rest
	}
	v.text = text
	for i, x := range *v.said {
		if x.Name == v.o.Name {
			(*v.said)[i].Text = text
			return nil
		}
	}
	*v.said = append(*v.said, option.Setting{Name: v.o.Name, Text: text})
	return nil
}

func (v *flagValue[S]) String() string { return v.text }

// Type implements pflag.Value: the word that stands for the value in the help.
func (v *flagValue[S]) Type() string {
	if t := v.o.Type(); t != "text" {
		return t
	}
	return "string"
}

// groupedFlag is a flag and the heading that it stands under.
type groupedFlag struct {
	*pflag.Flag
	group string
}

// flagsOf makes flags of a table, which set s and note the settings.
func flagsOf[S any](t option.Table[S], s *S, said *[]option.Setting) (list []groupedFlag) {
	for i := range t {
		o := &t[i]
		f := &pflag.Flag{Name: o.Name, Shorthand: o.Short, Usage: o.Usage(), Value: &flagValue[S]{o: o, s: s, said: said}}
		if o.Type() == "bool" {
			f.NoOptDefVal = "true"
		}
		if o.Values != nil {
			annotate(f, valuesKey, o.Values()...)
		}
		list = append(list, groupedFlag{f, o.Group})
	}
	return list
}

// optionGroups puts flags under their headings, and --help under the last.
func optionGroups(headings []string, flags []groupedFlag) (groups []group) {
	for _, title := range headings {
		g := newGroup(title)
		for _, f := range flags {
			if f.group == title {
				g.AddFlag(f.Flag)
			}
		}
		groups = append(groups, g)
	}
	groups[len(groups)-1].BoolP("help", "h", false, "this help")
	return groups
}

// optionHelp is the help of one of the options of training, for commands that have it, too.
func optionHelp(name string) string { return train.Options().Find(name).Usage() }

// sayings lists options as they were said: --batch 4.
func sayings(list []option.Setting) string {
	var words []string
	for _, x := range list {
		words = append(words, "--"+x.Name)
	}
	return strings.Join(words, ", ")
}

// dashed is an error about an option by the name that it has on the command line.
func dashed(err error) error {
	if e, ok := err.(*option.Error); ok {
		return fmt.Errorf("--%w", e)
	}
	return err
}
