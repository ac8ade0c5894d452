package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"onlinerna/internal/nearest"
)

// ReadFile reads a config that a user wrote: JSON as config.json, or YAML with the same keys (.yaml, .yml). What it leaves out is zero, but for Winograd,
// which is on. A key that a Config does not have is an error.
func ReadFile(path string) (Config, error) { return read(path, Config{Winograd: true}) }

// read reads a config over c.
func read(path string, c Config) (Config, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return Config{}, err
	}
	if ext := strings.ToLower(filepath.Ext(path)); ext == ".yaml" || ext == ".yml" {
		var v map[string]any
		if err := yaml.Unmarshal(b, &v); err != nil {
			return Config{}, fmt.Errorf("%s: %w", path, err)
		}
		if b, err = json.Marshal(v); err != nil {
			return Config{}, fmt.Errorf("%s: %w", path, err)
		}
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return Config{}, fmt.Errorf("%s: %w", path, explain(err))
	}
	if _, err := d.Token(); err != io.EOF {
		return Config{}, fmt.Errorf("%s: there is more behind the config", path)
	}
	return c, nil
}

// Differ lists the keys in which two texts of config.json differ, for people.
func Differ(a, b []byte) string {
	var x, y map[string]json.RawMessage
	for _, v := range []struct {
		text []byte
		into *map[string]json.RawMessage
	}{{a, &x}, {b, &y}} {
		if err := json.Unmarshal(v.text, v.into); err != nil {
			return err.Error()
		}
	}
	var list []string
	for key := range maps.Keys(x) {
		if !bytes.Equal(x[key], y[key]) {
			list = append(list, key)
		}
	}
	for key := range maps.Keys(y) {
		if _, ok := x[key]; !ok {
			list = append(list, key)
		}
	}
	if len(list) == 0 {
		return "its spaces"
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// explain says more of a key that there is not, or of a value of the wrong kind.
func explain(err error) error {
	if rest, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		key := strings.Trim(rest, `"`)
		hint := ""
		if near := nearest.To(key, keys(reflect.TypeFor[Config]())); near != "" {
			hint = fmt.Sprintf(", did you mean %s?", near)
		}
		return fmt.Errorf("unknown key %q%s", key, hint)
	}
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		return fmt.Errorf("%s: %s where %s is wanted", kind.Field, kind.Value, kind.Type)
	}
	return err
}

// keys lists the keys of a struct and of those in it.
func keys(t reflect.Type) []string {
	var list []string
	for i := range t.NumField() {
		f := t.Field(i)
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			list = append(list, name)
		}
		if f.Type.Kind() == reflect.Struct {
			list = append(list, keys(f.Type)...)
		}
	}
	return list
}
