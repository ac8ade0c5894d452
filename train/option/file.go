package option

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Encode writes the set options of s as a JSON object, in the table's order, with underscores for hyphens.
func (t Table[S]) Encode(s *S) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("{")
	sep := "\n"
	for i := range t {
		o := &t[i]
		if !o.IsSet(s) {
			continue
		}
		v, err := encode(o.Field(s))
		if err != nil {
			return nil, &Error{o.Name, o.Text(s), err}
		}
		fmt.Fprintf(&b, "%s  %q: %s", sep, strings.ReplaceAll(o.Name, "-", "_"), v)
		sep = ",\n"
	}
	b.WriteString("\n}\n")
	return b.Bytes(), nil
}

func encode(field any) ([]byte, error) {
	switch v := field.(type) {
	case List:
		return json.Marshal(v.List())
	case Value:
		if text := v.String(); json.Valid([]byte(text)) {
			return []byte(text), nil
		}
		return json.Marshal(v.String())
	}
	v := elem(field)
	if v.Type() == durationType {
		return json.Marshal(fmt.Sprint(v.Interface()))
	}
	return json.Marshal(v.Interface())
}

// Limits on bytes: of a YAML config, whose nodes take fifty times as much memory, and of all values of an option, since
// an alias in YAML repeats a long text in two bytes.
const (
	maxYAML   = 4 << 20
	maxValues = 16 << 20
)

// Decode reads an object of JSON or, if isYAML, of YAML.
func Decode(text []byte, isYAML bool) (map[string]any, error) {
	var v map[string]any
	if isYAML {
		if len(text) > maxYAML {
			return nil, fmt.Errorf("%d bytes of YAML, the limit is %d: JSON may have more", len(text), maxYAML)
		}
		if err := yaml.Unmarshal(text, &v); err != nil {
			var wrong *yaml.TypeError
			if errors.As(err, &wrong) {
				return nil, errors.New("want options, as 'epochs: 30', one a line")
			}
			return nil, err
		}
		return v, nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		if errors.As(err, new(*json.UnmarshalTypeError)) {
			return nil, errors.New(`want options, as {"epochs": 30}`)
		}
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("there is more behind the options")
	}
	return v, nil
}

// FromFile converts the result of Decode to settings, in the table's order. A null is skipped.
func (t Table[S]) FromFile(values map[string]any) ([]Setting, error) {
	byName := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		o, err := t.Lookup(key)
		if err != nil {
			return nil, errors.New(strings.Replace(err.Error(), "unknown option", "unknown key", 1))
		}
		if _, twice := byName[o.Name]; twice {
			return nil, fmt.Errorf("%s is there twice, with a hyphen and with an underscore", o.Name)
		}
		byName[o.Name] = values[key]
	}
	var list []Setting
	for i := range t {
		v, ok := byName[t[i].Name]
		if !ok || v == nil {
			continue
		}
		x, err := fromAny(v)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t[i].Name, err)
		}
		x.Name = t[i].Name
		list = append(list, x)
	}
	return list, nil
}

// fromAny converts a decoded value to a setting.
func fromAny(v any) (Setting, error) {
	if list, ok := v.([]any); ok {
		x := Setting{List: []string{}}
		size := 0
		for i, e := range list {
			text, err := scalar(e)
			if size += len(text); err == nil && size > maxValues {
				err = fmt.Errorf("its first %d values have more than %d bytes", i+1, maxValues)
			}
			if err != nil {
				return x, err
			}
			x.List = append(x.List, text)
		}
		return x, nil
	}
	text, err := scalar(v)
	return Setting{Text: text}, err
}

func scalar(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), nil
	case json.Number:
		return v.String(), nil
	case nil:
		return "", errors.New("null in a list")
	}
	switch reflect.ValueOf(v).Kind() {
	case reflect.Map:
		return "", errors.New("want a value, not a group of keys")
	case reflect.Slice:
		return "", errors.New("want a value, not a list")
	}
	return fmt.Sprint(v), nil
}
