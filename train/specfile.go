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

// maxFile bounds the bytes of a config. Class names may take most of them.
const maxFile = 16 << 20

// ReadOptions reads options from a user's file: JSON as config.json, or YAML (.yaml, .yml). Keys are the names of
// options, with hyphens or underscores. Unknown keys are errors.
func ReadOptions(path string) ([]option.Setting, error) {
	values, err := decodeFile(path)
	if err == nil {
		delete(values, givenKey)
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

// readSpec reads the config.json in a folder, the record of a run. Unknown keys are errors.
func readSpec(dir string) (Spec, error) {
	var c Spec
	path := filepath.Join(dir, configName)
	values, err := decodeFile(path)
	if err != nil {
		return c, fmt.Errorf("%s: %w", path, err)
	}
	if given, ok := values[givenKey].([]any); ok {
		c.Given = []string{}
		for _, name := range given {
			c.Given = append(c.Given, fmt.Sprint(name))
		}
		delete(values, givenKey)
	}
	if _, ok := values["winograd"]; !ok && nested(values) {
		values["winograd"] = false // the run predates this option
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

// givenKey is the key of Spec.Given.
const givenKey = "given"

// write writes config.json into the folder of a run.
func (c Spec) write(dir string) error {
	b, err := table.Encode(&c)
	if err != nil {
		return err
	}
	if c.Given != nil {
		given, err := json.Marshal(c.Given)
		if err != nil {
			return err
		}
		b = fmt.Appendf(bytes.TrimSuffix(b, []byte("\n}\n")), ",\n  %q: %s\n}\n", givenKey, given)
	}
	return files.Write(filepath.Join(dir, configName), b)
}

// differ lists the keys in which two texts of config.json differ, for display.
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

// Old config files: before options had a single name, schedule and rna were groups of keys, and some keys differed from
// the flag.

// renamed maps such a key to the option.
var renamed = map[string]string{
	"init_key": "key", "steps_limit": "limit-batches", "val_limit": "limit-val", "target_threshold": "bce-threshold",
	"train_size": "train-crop",
	"train_from": "train-crop-from", "train_ramp": "train-crop-ramp",
	"schedule.kind": "schedule", "schedule.by": "schedule-by", "schedule.rate": "lr", "schedule.final": "lr-final",
	"schedule.gamma":      "lr-gamma",
	"schedule.step_every": "lr-step", "schedule.milestones": "lr-milestones", "schedule.hold_for": "lr-hold",
	"schedule.power":  "lr-power",
	"schedule.warmup": "warmup", "schedule.warmup_steps": "warmup-steps", "schedule.warmup_from": "warmup-from",
	"schedule.warmup_inside": "warmup-inside",
	"rna.mode":               "rna", "rna.averages": "averages", "rna.bn": "rna-bn",
}

// nested reports whether values come from such a version.
func nested(values map[string]any) bool {
	for _, name := range []string{"schedule", "rna"} {
		if _, ok := values[name].(map[string]any); ok {
			return true
		}
	}
	return false
}

// upgrade renames the values of such a version to current names.
func upgrade(values map[string]any) error {
	for _, group := range []string{"schedule", "rna"} {
		inner, ok := values[group].(map[string]any)
		if !ok {
			continue
		}
		delete(values, group)
		if group == "schedule" {
			delete(inner, "epochs") // the run's
		} else if search, ok := inner["search"]; ok {
			delete(inner, "search")
			if search == true {
				inner["lambda"] = "auto"
			}
		}
		for key, v := range inner {
			name := renamed[group+"."+key]
			if name == "" {
				name = "rna-" + strings.ReplaceAll(key, "_", "-")
				if group == "schedule" || table.Find(name) == nil {
					return fmt.Errorf("unknown key %q in %s", key, group)
				}
			}
			values[name] = v
		}
	}
	for key, v := range values {
		if name := renamed[key]; name != "" {
			delete(values, key)
			values[name] = v
		}
	}
	if v, ok := values["no_shuffle"].(bool); ok {
		delete(values, "no_shuffle")
		values["shuffle"] = !v
	}
	for key, unit := range map[string]string{"checkpoint_steps": "steps", "checkpoint_minutes": "m"} {
		if v, ok := values[key]; ok {
			delete(values, key)
			values["checkpoint_every"] = fmt.Sprint(v) + unit
		}
	}
	return nil
}
