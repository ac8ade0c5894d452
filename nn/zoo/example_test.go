package zoo_test

import (
	"fmt"
	"log"

	"onlinerna/nn"
	"onlinerna/nn/zoo"
)

// A net of a family with other options: a registered one of the same names has its initial values.
func ExampleViT() {
	a, err := nn.Lookup("vit_b_16")
	if err != nil {
		log.Fatal(err)
	}
	a.Name, a.Size, a.MinSize, a.Classes = "my_vit", 32, 4, 10
	a.Build = zoo.ViT{Torchvision: true, Patch: 4, Width: 64, Heads: 4, Depth: 6, Hidden: 128, Dropout: .1}.Build
	m, err := a.Model(nn.Config{Batch: 64})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.Logits.Shape(), m.NumParams())
	// Output:
	// (64, 10) 208970
}
