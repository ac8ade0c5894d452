package train

import (
	"fmt"
	"strings"
)

// Files of the versions before options had one name each: schedule and rna were groups of keys, and some keys had another name than the flag.

// renamed maps such a key to the option.
var renamed = map[string]string{
	"init_key": "key", "steps_limit": "limit-batches", "val_limit": "limit-val", "target_threshold": "bce-threshold", "train_size": "train-crop",
	"train_from": "train-crop-from", "train_ramp": "train-crop-ramp",
	"schedule.kind": "schedule", "schedule.by": "schedule-by", "schedule.rate": "lr", "schedule.final": "lr-final", "schedule.gamma": "lr-gamma",
	"schedule.step_every": "lr-step", "schedule.milestones": "lr-milestones", "schedule.hold_for": "lr-hold", "schedule.power": "lr-power",
	"schedule.warmup": "warmup", "schedule.warmup_steps": "warmup-steps", "schedule.warmup_from": "warmup-from", "schedule.warmup_inside": "warmup-inside",
	"rna.mode": "rna", "rna.averages": "averages", "rna.bn": "rna-bn",
}

// nested says whether values are of such a version.
func nested(values map[string]any) bool {
	for _, name := range []string{"schedule", "rna"} {
		if _, ok := values[name].(map[string]any); ok {
			return true
		}
	}
	return false
}

// upgrade gives values of such a version the names of today.
func upgrade(values map[string]any) error {
	for _, group := range []string{"schedule", "rna"} {
		inner, ok := values[group].(map[string]any)
		if !ok {
			continue
		}
		delete(values, group)
		if group == "schedule" {
			delete(inner, "epochs") // of the run
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
