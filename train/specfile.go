package train

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"onlinerna/internal/files"
	"onlinerna/train/option"
)

// maxFile bounds the bytes of a config. Names of classes may take most of them.
const maxFile = 16 << 20

// ReadOptions reads the options that a user wrote into a file: JSON as config.json, or YAML (.yaml, .yml). Keys are the names of options, with hyphens
// or underscores. Another key is an error.
func ReadOptions(path string) ([]option.Setting, error) {
	values, err := decodeFile(path)
	if err == nil {
		err = upgrade(values)
	}
	var list []option.Setting
	if err == nil {
		list, err = table.FromFile(values)
	}
	if err == nil {
		err = table.Apply(new(Spec), list...)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return list, nil
}

// readSpec reads the config.json in a folder, the record of a run. A key that is no option is an error.
func readSpec(dir string) (Spec, error) {
	var c Spec
	path := filepath.Join(dir, configName)
	values, err := decodeFile(path)
	if err != nil {
		return c, fmt.Errorf("%s: %w", path, err)
	}
	if _, ok := values["winograd"]; !ok && nested(values) {
		values["winograd"] = false // the run is from before there was a choice
	}
	if err = upgrade(values); err == nil {
		var list []option.Setting
		if list, err = table.FromFile(values); err == nil {
			err = table.Apply(&c, list...)
		}
	}
	if err != nil {
		return Spec{}, fmt.Errorf("%s: %w", path, err)
	}
	c.Schedule.Epochs = c.Epochs
	return c, nil
}

func decodeFile(path string) (map[string]any, error) {
	b, err := files.ReadAtMost(path, maxFile)
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		err = path.Err // the caller names the file
	}
	if err != nil {
		return nil, err
	}
	ext := strings.ToLower(filepath.Ext(path))
	return option.Decode(b, ext == ".yaml" || ext == ".yml")
}

// write writes config.json into the folder of a run.
func (c Spec) write(dir string) error {
	b, err := table.Encode(&c)
	if err != nil {
		return err
	}
	return files.Write(filepath.Join(dir, configName), b)
}

// differ lists the keys in which two texts of config.json differ, for people.
func differ(a, b []byte) string {
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
