// Package option declares each choice of a user once: an [Option] is a flag of a command, a key of its files and a line
// of its documentation, and a [Table] of them reads, checks and writes the values of a struct.
//
// # Not set
//
// A field with its type's zero value is not set, and stands for the default. So an option for which zero is a valid
// non-default choice has a pointer or a list as its field, which is not set if nil. [Table.Ambiguous] checks this rule.
package option

import (
	"fmt"
	"slices"
	"strings"

	"onlinerna/internal/nearest"
)

// Option is one choice of a user. Its name is the name of the flag and of the key in files, where underscores may
// replace hyphens.
type Option[S any] struct {
	Name  string
	Short string // the flag's letter, if it has one
	Group string // its heading in the help
	// Help describes it in one line, without the default. A `quoted` word is the name of the value.
	Help    string
	Default string // the value or a description; empty if an unset option does nothing
	// Values lists the values, or some of them if Open is true. Shells complete them.
	Values func() []string
	Open   bool
	// Check and CheckText return an error for an invalid number or text; for a list they check each element. The error
	// follows the option's name and value, as in "must be above 0".
	Check     func(x float64) error
	CheckText func(s string) error
	// Field returns a pointer to the value: a string, bool, number, time.Duration, a pointer, list or array of those, or a
	// [Value].
	Field func(s *S) any

	Resumable bool // a resumed run may change it
	Local     bool // processes that train together may have different values
	// Clears names options that this one unsets, unless they come from the same source: a batch clears a recipe's
	// accumulation.
	Clears []string
}

// Value is a field with its own text form.
type Value interface {
	Set(text string) error
	String() string // "" if not set
	Unset()
}

// Checker is a Value that a program may have set to a value that Set rejects.
type Checker interface {
	Value
	Check() error
}

// List is a Value that files may also give as a list.
type List interface {
	Value
	SetList(list []string)
	List() []string
}

// Error reports a value that an option rejects.
type Error struct {
	Name, Value string
	Err         error // the reason
}

func (e *Error) Error() string { return strings.TrimSpace(e.Name+" "+e.Value) + ": " + e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Usage returns the help followed by the default.
func (o *Option[S]) Usage() string {
	if o.Default == "" {
		return o.Help
	}
	return fmt.Sprintf("%s (default: %s)", o.Help, o.Default)
}

// Set sets the value in s from a text, as on a command line. The error is an [*Error].
func (o *Option[S]) Set(s *S, text string) error {
	return o.apply(s, Setting{Name: o.Name, Text: text})
}

// IsSet reports whether the option is set in s.
func (o *Option[S]) IsSet(s *S) bool { return isSet(o.Field(s)) }

// Unset resets the value to that of a zero S.
func (o *Option[S]) Unset(s *S) { unset(o.Field(s)) }

// Text returns the value in s as Set accepts it; "" if not set.
func (o *Option[S]) Text(s *S) string {
	f := o.Field(s)
	if !isSet(f) {
		return ""
	}
	return textOf(f)
}

// Type names the kind of the value: "string", "bool", "int", "number", "time", "list", or for a Value the result of its
// Type method if it has one, else "text".
func (o *Option[S]) Type() string { return typeOf(o.Field(new(S))) }

// Setting is a value, a text or a list, for the named option.
type Setting struct {
	Name string
	Text string
	List []string // nil for a text
}

func (x Setting) String() string {
	if x.List != nil {
		return joinList(x.List)
	}
	return x.Text
}

// Settings parses words as alternating names and values.
func Settings(words string) (list []Setting) {
	f := strings.Fields(words)
	for i := 0; i+1 < len(f); i += 2 {
		list = append(list, Setting{Name: f[i], Text: f[i+1]})
	}
	return list
}

func (o *Option[S]) apply(s *S, x Setting) error {
	fail := func(err error) error { return &Error{o.Name, x.String(), err} }
	f := o.Field(s)
	if err := set(f, x); err != nil {
		return fail(err)
	}
	if err := o.check(f); err != nil {
		return fail(err)
	}
	return nil
}

// check returns an error if a set field is invalid.
func (o *Option[S]) check(field any) error {
	return each(field, func(x float64) error {
		if o.Check == nil {
			return nil
		}
		return o.Check(x)
	}, func(text string) error {
		if o.Values != nil && !o.Open && text != "" {
			return oneOf(text, o.Values())
		}
		if o.CheckText != nil {
			return o.CheckText(text)
		}
		return nil
	})
}

// oneOf returns an error that lists the values unless text is one of them.
func oneOf(text string, values []string) error {
	for _, v := range values {
		if v == text {
			return nil
		}
	}
	hint := ""
	if n := nearest.To(text, values); n != "" {
		hint = fmt.Sprintf(" (did you mean %s?)", n)
	}
	return fmt.Errorf("use one of %s%s", strings.Join(values, ", "), hint)
}

// Table is a list of options, in the order of the help and of files.
type Table[S any] []Option[S]

// Under returns the table with all options under one heading.
func (t Table[S]) Under(group string) Table[S] {
	t = slices.Clone(t)
	for i := range t {
		t[i].Group = group
	}
	return t
}

// In converts a table for a part of S to a table for S.
func In[S, T any](t Table[T], part func(*S) *T) (out Table[S]) {
	for _, o := range t {
		out = append(out, Option[S]{Name: o.Name, Short: o.Short, Group: o.Group, Help: o.Help, Default: o.Default,
			Values: o.Values, Open: o.Open,
			Check: o.Check, CheckText: o.CheckText, Resumable: o.Resumable, Local: o.Local, Clears: o.Clears,
			Field: func(s *S) any { return o.Field(part(s)) }})
	}
	return out
}

// Find returns the option with that name, nil for none. Underscores may replace hyphens.
func (t Table[S]) Find(name string) *Option[S] {
	name = strings.ReplaceAll(name, "_", "-")
	for i := range t {
		if t[i].Name == name {
			return &t[i]
		}
	}
	return nil
}

// Lookup is Find with an error that suggests a name.
func (t Table[S]) Lookup(name string) (*Option[S], error) {
	if o := t.Find(name); o != nil {
		return o, nil
	}
	var names []string
	for _, o := range t {
		names = append(names, o.Name)
	}
	hint := ""
	if near := nearest.To(strings.ReplaceAll(name, "_", "-"), names); near != "" {
		hint = fmt.Sprintf(", did you mean %s?", near)
	}
	return nil, fmt.Errorf("unknown option %q%s", name, hint)
}

// Groups lists the headings in order of appearance.
func (t Table[S]) Groups() (list []string) {
	seen := map[string]bool{}
	for _, o := range t {
		if !seen[o.Group] {
			seen[o.Group] = true
			list = append(list, o.Group)
		}
	}
	return list
}

// Apply sets the options of one source: a recipe, a file or a command line. Options of earlier sources that these clear
// become unset, unless these repeat the value of an earlier source.
func (t Table[S]) Apply(s *S, list ...Setting) error {
	for _, x := range list {
		o, err := t.Lookup(x.Name)
		if err != nil {
			return err
		}
		if o.IsSet(s) && textOf(o.Field(s)) == x.String() {
			continue
		}
		for _, name := range o.Clears {
			t.Find(name).Unset(s)
		}
	}
	for _, x := range list {
		if err := t.Find(x.Name).apply(s, x); err != nil {
			return err
		}
	}
	return nil
}

// Check returns an [*Error] for an invalid value in s. Unset options are valid.
func (t Table[S]) Check(s *S) error {
	for i := range t {
		o := &t[i]
		if !o.IsSet(s) {
			continue
		}
		f := o.Field(s)
		if err := o.check(f); err != nil {
			return &Error{o.Name, textOf(f), err}
		}
	}
	return nil
}

// Settings lists the options that are set in s.
func (t Table[S]) Settings(s *S) (list []Setting) {
	for i := range t {
		if o := &t[i]; o.IsSet(s) {
			list = append(list, settingOf(o.Name, o.Field(s)))
		}
	}
	return list
}

// Ambiguous names an option for which zero is a valid non-default choice, but whose field cannot distinguish zero from
// unset; "" for none.
func (t Table[S]) Ambiguous() string {
	for i := range t {
		o := &t[i]
		if o.Default == "" || strings.HasPrefix(o.Default, "0") {
			continue
		}
		zero := map[string]string{"bool": "false", "int": "0", "number": "0"}[o.Type()]
		s := new(S)
		if zero != "" && o.Set(s, zero) == nil && !o.IsSet(s) {
			return o.Name
		}
	}
	return ""
}

// Row is an option without its values, as shown in documents.
type Row struct {
	Name      string   `json:"name"`
	Short     string   `json:"short,omitempty"`
	Group     string   `json:"group"`
	Type      string   `json:"type"`
	Help      string   `json:"help"`
	Default   string   `json:"default,omitempty"`
	Values    []string `json:"values,omitempty"`
	Resumable bool     `json:"resumable,omitempty"`
}

// Rows describes the options of a table.
func (t Table[S]) Rows() (rows []Row) {
	for i := range t {
		o := &t[i]
		r := Row{Name: o.Name, Short: o.Short, Group: o.Group, Type: o.Type(), Help: o.Help, Default: o.Default,
			Resumable: o.Resumable}
		if o.Values != nil {
			r.Values = o.Values()
		}
		rows = append(rows, r)
	}
	return rows
}
