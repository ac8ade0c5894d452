package torchfile

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// wrappers are the keys under which training scripts keep the state dict beside other things, the first that is there first.
var wrappers = []string{"state_dict", "model_state_dict", "model"}

// find finds the tensors under a key of what was saved.
func find(top any, key string) (*File, error) {
	d, ok := top.(*dict)
	if o, is := top.(*object); is {
		return nil, fmt.Errorf("%s was saved, not a state dict: save its state_dict()", kind(o))
	}
	if !ok {
		return nil, fmt.Errorf("%s was saved, not a state dict", kind(top))
	}
	f := &File{Metadata: described(d)}
	keys := stateKeys(d)
	state := d
	switch {
	case key != "":
		v := d.under(key)
		if v == nil {
			return nil, fmt.Errorf("there is no key %q: %s", key, listed(d, keys))
		}
		if state, ok = v.(*dict); !ok {
			return nil, fmt.Errorf("under the key %q is %s, not a state dict: %s", key, kind(v), listed(d, keys))
		}
		f.Key = key
	case !state.isState():
		for range 3 {
			at := firstOf(state)
			if at == "" {
				break
			}
			inner, ok := state.lookup(at).(*dict)
			if !ok {
				return nil, fmt.Errorf("%s is under the key %s, where a state dict was expected: %s", kind(state.lookup(at)), at, listed(d, keys))
			}
			if state = inner; f.Key != "" {
				at = f.Key + "." + at
			}
			if f.Key = at; inner.isState() {
				break
			}
		}
		if f.Key == "" && len(keys) > 0 && !state.hasTensor() {
			if len(keys) > 1 {
				return nil, fmt.Errorf("several state dicts, %s: choose one by its key", strings.Join(keys, ", "))
			}
			f.Key, state = keys[0], d.lookup(keys[0]).(*dict)
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

// firstOf is the first of wrappers that d has, empty for none.
func firstOf(d *dict) string {
	for _, k := range wrappers {
		if d.lookup(k) != nil {
			return k
		}
	}
	return ""
}

// under is the value of a key, or of keys within keys with points between them.
func (d *dict) under(key string) any {
	if v := d.lookup(key); v != nil {
		return v
	}
	for i := range key {
		if key[i] != '.' {
			continue
		}
		if inner, ok := d.lookup(key[:i]).(*dict); ok {
			if v := inner.under(key[i+1:]); v != nil {
				return v
			}
		}
	}
	return nil
}

// extra ends the names of what modules save of themselves beside tensors.
const extra = "_extra_state"

// isState says whether d is a state dict: tensors by name.
func (d *dict) isState() bool {
	for _, it := range d.items {
		name, ok := it.key.(string)
		if !ok {
			return false
		}
		switch it.value.(type) {
		case *tensor, *broken:
		default:
			if !strings.HasSuffix(name, extra) {
				return false
			}
		}
	}
	return d.hasTensor()
}

func (d *dict) hasTensor() bool {
	for _, it := range d.items {
		switch it.value.(type) {
		case *tensor, *broken:
			return true
		}
	}
	return false
}

// stateKeys lists the keys of d under which state dicts are.
func stateKeys(d *dict) []string {
	var keys []string
	for _, it := range d.items {
		inner, ok := it.value.(*dict)
		if name, is := it.key.(string); ok && is && inner.isState() {
			keys = append(keys, name)
		}
	}
	return keys
}

// listed says where there are state dicts.
func listed(d *dict, keys []string) string {
	switch {
	case len(keys) > 0:
		return "there are state dicts under " + strings.Join(keys, ", ")
	case d.isState():
		return "the state dict is what was saved, without a key"
	}
	return "there is no state dict under any key"
}

// tensorsOf lists the tensors of a state dict.
func tensorsOf(d *dict) ([]Tensor, error) {
	var tensors []Tensor
	seen := map[string]bool{}
	for _, it := range d.items {
		name, ok := it.key.(string)
		if ok && strings.HasSuffix(name, extra) {
			continue
		}
		if b, is := it.value.(*broken); is {
			return nil, fmt.Errorf("tensor %s: %w", shown(it.key), b.err)
		}
		t, is := it.value.(*tensor)
		if !ok || !is {
			return nil, fmt.Errorf("key %s holds %s: the state dict must be what was saved, or be under the key %s, or name its key",
				shown(it.key), kind(it.value), strings.Join(wrappers, " or "))
		}
		if seen[name] {
			return nil, fmt.Errorf("tensor %q occurs twice", name)
		}
		seen[name] = true
		tensors = append(tensors, Tensor{Name: name, DType: t.dtype, Shape: t.shape, Strides: t.strides,
			Offset: t.place.off + int64(t.at)*int64(t.dtype.Size())})
	}
	if len(tensors) == 0 {
		return nil, errors.New("an empty state dict")
	}
	return tensors, nil
}

// described is what a training script's checkpoint says of itself: the model by the arguments of the script, and the epoch.
func described(d *dict) map[string]string {
	m := map[string]string{}
	if e, ok := d.lookup("epoch").(int64); ok {
		m["epoch"] = strconv.FormatInt(e, 10)
	}
	sources := []any{d}
	for _, k := range []string{"args", "hyper_parameters", "config"} {
		sources = append(sources, d.lookup(k))
	}
	for _, s := range sources {
		if o, ok := s.(*object); ok {
			s = o.state
		}
		args, ok := s.(*dict)
		if !ok {
			continue
		}
		for _, k := range []string{"arch", "model", "model_name"} {
			if name, ok := args.lookup(k).(string); ok && m["model"] == "" {
				m["model"] = name
			}
		}
	}
	return m
}
