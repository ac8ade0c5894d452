package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

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

// String implements pflag.Value.
func (v *flagValue[S]) String() string { return v.text }

// Type implements pflag.Value: the word that stands for the value in the help.
func (v *flagValue[S]) Type() string {
	if t := v.o.Type(); t != "text" {
		return t
	}
	return "string"
}

// GroupedFlag is a flag and the heading that it stands under.
type GroupedFlag struct {
	*pflag.Flag
	Heading string
}

// Flags makes flags of a table, which set s and note the settings.
func Flags[S any](t option.Table[S], s *S, said *[]option.Setting) (list []GroupedFlag) {
	for i := range t {
		o := &t[i]
		f := &pflag.Flag{Name: o.Name, Shorthand: o.Short, Usage: o.Usage(), Value: &flagValue[S]{o: o, s: s, said: said}}
		if o.Type() == "bool" {
			f.NoOptDefVal = "true"
		}
		if o.Values != nil {
			annotate(f, ValuesKey, o.Values()...)
		}
		list = append(list, GroupedFlag{f, o.Group})
	}
	return list
}

// UnderHeadings puts flags under their headings.
func UnderHeadings(headings []string, flags []GroupedFlag) (groups []Group) {
	for _, title := range headings {
		g := NewGroup(title)
		for _, f := range flags {
			if f.Heading == title {
				g.AddFlag(f.Flag)
			}
		}
		groups = append(groups, g)
	}
	return groups
}

// Said lists options with their values, as --batch 4.
func Said(list []option.Setting) string {
	var words []string
	for _, x := range list {
		words = append(words, "--"+x.Name)
	}
	return strings.Join(words, ", ")
}

// Dashed writes the option in an error as on the command line.
func Dashed(err error) error {
	if e, ok := err.(*option.Error); ok {
		return fmt.Errorf("--%w", e)
	}
	return err
}
