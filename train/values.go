package train

import (
	"errors"
	"path"
	"strconv"
	"strings"
	"time"

	"onlinerna/data"
	"onlinerna/data/format"
	"onlinerna/train/option"
)

// Option values with their own text form.

// classesValue is the list of classes: on the command line, a file with one.
type classesValue struct{ c *Spec }

func (v classesValue) Set(file string) error {
	names, err := format.ReadClasses(file)
	if err == nil {
		v.c.Classes = names
	}
	return err
}

func (v classesValue) String() string        { return strings.Join(v.c.Classes, ",") }
func (v classesValue) Unset()                { v.c.Classes = nil }
func (v classesValue) List() []string        { return v.c.Classes }
func (v classesValue) SetList(list []string) { v.c.Classes = list }

// batchValue is a number of images, or auto.
type batchValue struct{ c *Spec }

func (v batchValue) Set(text string) error {
	if text == "auto" {
		v.c.Batch = AutoBatch
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return errors.New("want a number of images, from 1, or auto")
	}
	v.c.Batch = n
	return v.Check()
}

func (v batchValue) Check() error {
	if n := v.c.Batch; n < 1 && n != AutoBatch {
		return errors.New("must be at least 1, or auto")
	}
	return nil
}

func (v batchValue) String() string {
	switch v.c.Batch {
	case 0:
		return ""
	case AutoBatch:
		return "auto"
	}
	return strconv.Itoa(v.c.Batch)
}

func (v batchValue) Unset() { v.c.Batch = 0 }

// interval is the interval between checkpoints: a number of epochs, steps or minutes.
type interval struct{ c *Spec }

func (v interval) String() string {
	c := v.c
	switch {
	case c.CheckpointSteps > 0:
		return strconv.Itoa(c.CheckpointSteps) + "steps"
	case c.CheckpointMinutes > 0:
		return time.Duration(c.CheckpointMinutes * float64(time.Minute)).String()
	case c.CheckpointEvery == 0:
		return ""
	}
	return strconv.Itoa(c.CheckpointEvery)
}

func (interval) Type() string { return "interval" }

func (v interval) Check() error { return option.NotNegative(float64(v.c.CheckpointEvery)) }

func (v interval) Unset() { v.c.CheckpointEvery, v.c.CheckpointSteps, v.c.CheckpointMinutes = 0, 0, 0 }

// Set reads epochs, such as 2, steps, such as 500steps, or a time, such as 10m.
func (v interval) Set(text string) error {
	digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
	n, err := strconv.Atoi(text[:digits])
	t, clock := time.ParseDuration(text)
	unit := strings.TrimSpace(text[digits:])
	epochs, steps, minutes := 0, 0, 0.
	switch {
	case err == nil && (unit == "" || unit == "epoch" || unit == "epochs"):
		epochs = n
	case err == nil && (unit == "step" || unit == "steps"):
		steps = n
	case clock == nil && t > 0:
		minutes = t.Minutes()
	default:
		return errors.New("want epochs, as 2, steps, as 500steps, or time, as 90s, 10m or 1h")
	}
	if epochs == 0 && steps == 0 && minutes == 0 {
		return errors.New("must be above 0")
	}
	v.c.CheckpointEvery, v.c.CheckpointSteps, v.c.CheckpointMinutes = epochs, steps, minutes
	return nil
}

// maxBadValue is a number of images, a share, or a word.
type maxBadValue struct{ c *Spec }

func (v maxBadValue) Set(text string) error {
	m, err := data.ParseMaxBad(text)
	if err != nil {
		return errors.New("want a count, as 20, a share below 1, as 0.05 or 5%, all or auto")
	}
	v.c.MaxBad = &m
	return nil
}

func (v maxBadValue) String() string {
	if v.c.MaxBad == nil {
		return ""
	}
	return v.c.MaxBad.String()
}

func (v maxBadValue) Check() error {
	if v.c.MaxBad.Check() != nil {
		return errors.New("want a count, as 20, or a share below 1, as 0.05 or 5%")
	}
	return nil
}

func (v maxBadValue) Unset()     { v.c.MaxBad = nil }
func (maxBadValue) Type() string { return "number" }

// pattern checks a pattern of names.
func pattern(text string) error {
	if _, err := path.Match(text, ""); err != nil {
		return errors.New("is no pattern of names, as *.bias")
	}
	return nil
}
