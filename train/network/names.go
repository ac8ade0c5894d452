package network

import (
	"cmp"
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"onlinerna/nn"
	"onlinerna/train/statedict"
)

//go:embed names.txt
var otherNames string

// naming maps another program's tensor names to nn's, for some nets.
type naming struct {
	nets     *regexp.Regexp
	prefixes []string // that names may have
	rules    []rule   // the first matching rule applies
}

type rule struct {
	from   *regexp.Regexp
	prefix string // of all names that match, which takes less time to see
	to     string
}

var namings = func() (list []naming) {
	for line := range strings.Lines(otherNames) {
		f := strings.Fields(line)
		switch {
		case len(f) == 0 || f[0] == "#":
		case f[0] == "nets" && len(f) > 1:
			list = append(list, naming{nets: whole(f[1]), prefixes: f[2:]})
		case len(f) != 2:
			panic(fmt.Sprintf("names.txt: %q", line))
		default:
			n := &list[len(list)-1]
			from := whole(f[0])
			prefix, _ := from.LiteralPrefix()
			n.rules = append(n.rules, rule{from, prefix, f[1]})
		}
	}
	return list
}()

// whole compiles a regular expression that must match the whole string.
func whole(s string) *regexp.Regexp { return regexp.MustCompile("^(?:" + s + ")$") }

var group = regexp.MustCompile(`\{(\d)([+-]\d+)?\}`)

// name is nn's name of a tensor, "" if nn has none, or the other program's name if no rule matches.
func (n naming) name(other string) string {
	own := other
	for _, p := range n.prefixes {
		if rest, ok := strings.CutPrefix(other, p); ok {
			own = rest
		}
	}
	for _, r := range n.rules {
		if !strings.HasPrefix(own, r.prefix) {
			continue
		}
		found := r.from.FindStringSubmatch(own)
		if found == nil {
			continue
		}
		if r.to == "-" {
			return ""
		}
		return group.ReplaceAllStringFunc(r.to, func(s string) string {
			g := found[s[1]-'0']
			if add := s[2 : len(s)-1]; add != "" {
				k, _ := strconv.Atoi(g) // digits
				n, _ := strconv.Atoi(add)
				g = strconv.Itoa(k + n)
			}
			return g
		})
	}
	return other
}

// changes reports whether a rule gives a tensor another name.
func (n naming) changes(t statedict.Tensor) bool { return n.name(t.Name) != t.Name }

// renamed is f with nn's names if another program's naming matches more than the given number of the model's
// parameters, or as many and drops tensors that nn has none for. Parts of a tensor that lacks one keep the file's names.
// A file of many times the model's tensors is not the model's.
func renamed(f *statedict.File, model *nn.Model, most int) *statedict.File {
	const times = 4 // with parts, and tensors that are dropped
	if len(f.Tensors) > times*len(model.StateDict()) {
		return f
	}
	best := f
	for _, n := range namings {
		if !n.nets.MatchString(model.Arch.Name) || !slices.ContainsFunc(f.Tensors, n.changes) {
			continue
		}
		own := map[string]string{} // the file's names of parts
		g := f.Renamed(func(name string) string {
			to := n.name(name)
			if strings.ContainsAny(to, "@=") && own[to] == "" {
				own[to] = name
			}
			return to
		}).Joined().Cut()
		if len(own) > 0 {
			g = g.Renamed(func(name string) string { return cmp.Or(own[name], name) })
		}
		if k := known(g, "", model); k > most || k == most && len(g.Tensors) < len(best.Tensors) {
			best, most = g, k
		}
	}
	return best
}

// known counts the model's parameters that f has under a prefix.
func known(f *statedict.File, prefix string, model *nn.Model) (n int) {
	for _, p := range model.Params {
		if _, ok := f.Lookup(prefix + p.Name); ok {
			n++
		}
	}
	return n
}
