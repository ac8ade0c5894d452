package torchfile

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"onlinerna/internal/pickle"
)

// wrappers are training scripts' keys for the state dict among other entries, in the order of preference.
var wrappers = []string{"state_dict", "model_state_dict", "model"}

// find finds the tensors under a key of the saved value.
func find(top any, key string) (*File, error) {
	d, ok := top.(*pickle.Dict)
	if o, is := top.(*pickle.Object); is {
		return nil, fmt.Errorf("%s was saved, not a state dict: save its state_dict()", pickle.Kind(o))
	}
	if !ok {
		return nil, fmt.Errorf("%s was saved, not a state dict", pickle.Kind(top))
	}
	f := &File{Metadata: described(d)}
	keys := stateKeys(d)
	state := d
	switch {
	case key != "":
		v := under(d, key)
		if v == nil {
			return nil, fmt.Errorf("there is no key %q: %s", key, listed(d, keys))
		}
		if state, ok = v.(*pickle.Dict); !ok {
			return nil, fmt.Errorf("under the key %q is %s, not a state dict: %s", key, pickle.Kind(v), listed(d, keys))
		}
		f.Key = key
	case !isState(state):
		for range 3 {
			at := firstOf(state)
			if at == "" {
				break
			}
			inner, ok := state.Lookup(at).(*pickle.Dict)
			if !ok {
				return nil, fmt.Errorf("%s is under the key %s, where a state dict was expected: %s", pickle.Kind(state.Lookup(at)),
					at, listed(d, keys))
			}
			if state = inner; f.Key != "" {
				at = f.Key + "." + at
			}
			if f.Key = at; isState(inner) {
				break
			}
		}
		if f.Key == "" && len(keys) > 0 && !hasTensor(state) {
			if len(keys) > 1 {
				return nil, fmt.Errorf("several state dicts, %s: choose one by its key", strings.Join(keys, ", "))
			}
			f.Key, state = keys[0], d.Lookup(keys[0]).(*pickle.Dict)
		}
	}
	for _, k := range keys {
		if k != f.Key {
			f.Others = append(f.Others, k)
		}
	}
	var err error
	f.Tensors, err = tensorsOf(state)
	if err != nil && f.Key != "" {
		err = fmt.Errorf("%s: %w", f.Key, err)
	}
	return f, err
}

// firstOf is the first of wrappers in d, empty for none.
func firstOf(d *pickle.Dict) string {
	for _, k := range wrappers {
		if d.Lookup(k) != nil {
			return k
		}
	}
	return ""
}

// under is the value of a key, or of nested keys separated by dots.
func under(d *pickle.Dict, key string) any {
	if v := d.Lookup(key); v != nil {
		return v
	}
	for i := range key {
		if key[i] != '.' {
			continue
		}
		if inner, ok := d.Lookup(key[:i]).(*pickle.Dict); ok {
			if v := under(inner, key[i+1:]); v != nil {
				return v
			}
		}
	}
	return nil
}

// extra ends the names of modules' own data beside tensors.
const extra = "_extra_state"

// isState reports whether d is a state dict: tensors by name.
func isState(d *pickle.Dict) bool {
	for _, it := range d.Items {
		name, ok := it.Key.(string)
		if !ok {
			return false
		}
		switch it.Value.(type) {
		case *tensor, *broken:
		default:
			if !strings.HasSuffix(name, extra) {
				return false
			}
		}
	}
	return hasTensor(d)
}

// isOptimizer reports whether d is an optimiser's state dict.
func isOptimizer(d *pickle.Dict) bool {
	return d.Lookup("param_groups") != nil && d.Lookup("state") != nil
}

func hasTensor(d *pickle.Dict) bool {
	for _, it := range d.Items {
		switch it.Value.(type) {
		case *tensor, *broken:
			return true
		}
	}
	return false
}

// stateKeys lists the keys of d that hold state dicts.
func stateKeys(d *pickle.Dict) []string {
	var keys []string
	for _, it := range d.Items {
		inner, ok := it.Value.(*pickle.Dict)
		if name, is := it.Key.(string); ok && is && isState(inner) {
			keys = append(keys, name)
		}
	}
	return keys
}

// listed names the state dicts for an error.
func listed(d *pickle.Dict, keys []string) string {
	switch {
	case len(keys) > 0:
		return "there are state dicts under " + strings.Join(keys, ", ")
	case isState(d):
		return "the state dict is the saved value itself, without a key"
	}
	return "there is no state dict under any key"
}

// tensorsOf lists a state dict's tensors.
func tensorsOf(d *pickle.Dict) ([]Tensor, error) {
	if isOptimizer(d) {
		return nil, errors.New("the state of an optimiser, not weights")
	}
	var tensors []Tensor
	seen := map[string]bool{}
	for _, it := range d.Items {
		name, ok := it.Key.(string)
		if ok && strings.HasSuffix(name, extra) {
			continue
		}
		if b, is := it.Value.(*broken); is {
			return nil, brokenError{fmt.Errorf("tensor %s: %w", pickle.Shown(it.Key), b.err)}
		}
		t, is := it.Value.(*tensor)
		if inner, dict := it.Value.(*pickle.Dict); dict && ok && isOptimizer(inner) {
			return nil, fmt.Errorf("under the key %s is the state of an optimiser, not weights: %s", pickle.Shown(it.Key),
				listed(d, stateKeys(d)))
		}
		if !ok || !is {
			return nil, fmt.Errorf("key %s holds %s: "+
				"the state dict must be the saved value itself, or be under the key %s, or name its key",
				pickle.Shown(it.Key), pickle.Kind(it.Value), strings.Join(wrappers, " or "))
		}
		if seen[name] {
			return nil, fmt.Errorf("tensor %q occurs twice", name)
		}
		seen[name] = true
		tensors = append(tensors, t.exported(name))
	}
	if len(tensors) == 0 {
		return nil, errors.New("an empty state dict")
	}
	return tensors, nil
}

// described is a training script's metadata: the model from the script's arguments, and the epoch.
func described(d *pickle.Dict) map[string]string {
	m := map[string]string{}
	if e, ok := d.Lookup("epoch").(int64); ok {
		m["epoch"] = strconv.FormatInt(e, 10)
	}
	sources := []any{d}
	for _, k := range []string{"args", "hyper_parameters", "config"} {
		sources = append(sources, d.Lookup(k))
	}
	for _, s := range sources {
		if o, ok := s.(*pickle.Object); ok {
			s = o.State
		}
		args, ok := s.(*pickle.Dict)
		if !ok {
			continue
		}
		for _, k := range []string{"arch", "model", "model_name"} {
			if name, ok := args.Lookup(k).(string); ok && m["model"] == "" {
				m["model"] = name
			}
		}
	}
	return m
}
