package train_test

import (
	"context"
	"fmt"
	"log"

	"onlinerna/nn/device/cpu"
	"onlinerna/train"
	"onlinerna/train/average"
	"onlinerna/train/hook"
	"onlinerna/train/schedule"
)

// progress is a hook that prints a line per epoch.
type progress struct{}

func (progress) Name() string { return "progress" }

func (progress) AfterEpoch(_ context.Context, s *hook.State) error {
	fmt.Printf("epoch %d: error %.2f %%", s.Epoch, s.Record.SGD.Error())
	if r := s.Record.RNA; r != nil && r.Score != nil {
		fmt.Printf(", extrapolated %.2f %%", r.Score.Error())
	}
	fmt.Println()
	return nil
}

func Example() {
	dev, err := cpu.New(cpu.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	run, err := train.New(train.Spec{
		Data: "glyphs", Model: "lenet", Epochs: 15, Out: "runs/glyphs",
		Schedule: schedule.Schedule{Kind: schedule.Constant, Rate: 0.05},
		RNA:      average.Options{Window: 5},
	}, train.Deps{Device: dev, Hooks: []hook.Hook{progress{}}})
	if err != nil {
		log.Fatal(err)
	}
	defer run.Close()
	if err := run.Train(context.Background()); err != nil {
		log.Fatal(err)
	}
}
