package main

import (
	"testing"

	"onlinerna/train"
)

func TestEvery(t *testing.T) {
	for text, want := range map[string]train.Config{
		"2": {CheckpointEvery: 2}, "3epochs": {CheckpointEvery: 3}, "1 epoch": {CheckpointEvery: 1}, "500steps": {CheckpointSteps: 500}, "1step": {CheckpointSteps: 1},
		"10m": {CheckpointMinutes: 10}, "90s": {CheckpointMinutes: 1.5}, "1h30m": {CheckpointMinutes: 90},
	} {
		c := train.Config{CheckpointEvery: 1}
		if err := (*everyValue)(&c).Set(text); err != nil || c.CheckpointEvery != want.CheckpointEvery || c.CheckpointSteps != want.CheckpointSteps || c.CheckpointMinutes != want.CheckpointMinutes {
			t.Errorf("%s: %d epochs, %d steps, %g minutes, %v", text, c.CheckpointEvery, c.CheckpointSteps, c.CheckpointMinutes, err)
		}
		again := train.Config{}
		if err := (*everyValue)(&again).Set((*everyValue)(&c).String()); err != nil || again.CheckpointEvery != c.CheckpointEvery || again.CheckpointMinutes != c.CheckpointMinutes || again.CheckpointSteps != c.CheckpointSteps {
			t.Errorf("%s, as %v: %v", text, (*everyValue)(&c), err)
		}
	}
	for _, text := range []string{"", "0", "0steps", "-1", "x", "10", "s", "5parsecs", "-5m", "0s", "1.5"} {
		if err := (*everyValue)(&train.Config{}).Set(text); (err == nil) != (text == "10") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
