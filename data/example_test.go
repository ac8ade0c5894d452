package data_test

import (
	"context"
	"fmt"
	"log"

	"onlinerna/data"
)

func Example() {
	train, val, err := data.Open("glyphs", data.Options{})
	if err != nil {
		log.Fatal(err)
	}
	profile, err := data.ProfileOf(train)
	if err != nil {
		log.Fatal(err)
	}
	augment, err := profile.Train("auto", profile.Size)
	if err != nil {
		log.Fatal(err)
	}
	loader, err := data.NewLoader(train, augment, data.LoaderOptions{
		Batch: 128, Shuffle: true, Seed: 1, Substitute: true, MaxBad: data.UsualBad,
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(train.Len(), val.Len(), loader.Steps(), augment)
	for batch, err := range loader.Epoch(context.Background(), 0, 60) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(batch.Step, batch.N, batch.Height, batch.Width, batch.Channels, train.Classes()[batch.Labels[0]])
	}
	// Output:
	// 8000 4000 63 resize to 28, centre crop of 28
	// 60 128 28 28 1 triangle
	// 61 128 28 28 1 triangle
	// 62 64 28 28 1 hexagon
}
