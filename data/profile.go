package data

// Profile says how a set is usually prepared for a network.
type Profile struct {
	// Name is the set that it follows: "imagenet", "cifar", "mnist" or "glyphs".
	Name string
	// Size is the usual height and width of the network's input.
	Size int
	// Mean and Std normalise a channel: (pixel/255 − Mean) / Std.
	Mean, Std []float64

	small bool // the network sees its images whole
}

// Augmentations lists the names that Profile.Train knows.
func Augmentations() []string { return []string{"auto", "imagenet", "cifar", "none"} }
