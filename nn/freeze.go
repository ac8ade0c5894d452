package nn

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// freeze notes which patterns of Config.Freeze a name matches, and reports whether it is frozen.
func (b *Builder) freeze(name string) bool {
	frozen := false
	for i, p := range b.model.Config.Freeze {
		rest, not := strings.CutPrefix(p, "!")
		ok, err := path.Match(rest, name)
		if err != nil {
			b.Fail(fmt.Errorf("freeze pattern %q: %w", p, err))
		}
		if b.matched == nil {
			b.matched = make([]bool, len(b.model.Config.Freeze))
		}
		b.matched[i] = b.matched[i] || ok
		frozen = frozen || ok != not
	}
	return frozen
}

// checkFreeze rejects patterns that match nothing, and models without a trainable parameter.
func (b *Builder) checkFreeze() error {
	patterns := b.model.Config.Freeze
	if len(patterns) == 0 || len(b.model.Params) == 0 {
		return nil
	}
	if i := slices.Index(b.matched, false); i >= 0 {
		return fmt.Errorf("freeze pattern %q: no parameter has such a name; they are as %s and %s", patterns[i],
			b.model.Params[0].Name, b.model.Params[len(b.model.Params)-1].Name)
	}
	if !slices.ContainsFunc(b.model.Params, func(p Param) bool { return !p.Frozen }) {
		return fmt.Errorf("freeze patterns %q leave no parameter to train", patterns)
	}
	return nil
}
