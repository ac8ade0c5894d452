package main

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"onlinerna/train"
)

// everyValue is the option --checkpoint-every: what a config has as epochs, steps or minutes.
type everyValue train.Config

func (v *everyValue) Type() string { return "interval" }

func (v *everyValue) String() string {
	switch {
	case v.CheckpointSteps > 0:
		return strconv.Itoa(v.CheckpointSteps) + "steps"
	case v.CheckpointMinutes > 0:
		return time.Duration(v.CheckpointMinutes * float64(time.Minute)).String()
	}
	return strconv.Itoa(v.CheckpointEvery)
}

// Set implements pflag.Value.
func (v *everyValue) Set(text string) error {
	digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
	n, err := strconv.Atoi(text[:digits])
	t, clock := time.ParseDuration(text)
	switch unit := strings.TrimSpace(text[digits:]); {
	case err == nil && (unit == "" || unit == "epoch" || unit == "epochs"):
		v.CheckpointEvery, v.CheckpointSteps, v.CheckpointMinutes = n, 0, 0
	case err == nil && (unit == "step" || unit == "steps"):
		v.CheckpointEvery, v.CheckpointSteps, v.CheckpointMinutes = 0, n, 0
	case clock == nil && t > 0:
		v.CheckpointEvery, v.CheckpointSteps, v.CheckpointMinutes = 0, 0, t.Minutes()
		return nil
	default:
		return errors.New("want epochs, as 2, steps, as 500steps, or time, as 90s, 10m or 1h")
	}
	if n == 0 {
		return errors.New("must be above 0")
	}
	return nil
}
