package data

// Batch is a number of images of one size with their labels. Row n of each slice belongs to the
// same image.
//
// The network sees of image n a window of Height×Width, the size of the image itself, whose top
// left corner is at (top, left):
//
//	out[y, x] = image[top+y, left+x]          if flip = 0
//	out[y, x] = image[top+y, left+Width-1-x]  if flip = 1
//
// and 0, before normalisation, outside the image. Most crops are (0, 0, flip): only padded crops move the window.
type Batch struct {
	Epoch int // the epoch it belongs to
	Step  int // its position in the epoch, from 0
	First int // the position of its first image in the epoch, from 0

	N, Height, Width, Channels int

	Images []uint8 // [N, Height, Width, Channels]
	Crops  []int32 // [N, 3]: top, left, flip (0 or 1)
	Labels []int32 // [N]; −1 in a set of another task than classification
	// Targets are the targets of the images of such a set, a row of as many numbers as it has classes, mixed already.
	Targets []float32
	// Other are the labels of the images mixed into these, whose own weight is Share; empty without mixing.
	Other []int32 // [N]
	Share float64
	// Inputs are the further inputs of nets by name: N rows of numbers each.
	Inputs map[string][]float32
	Index  []int // [N], the index of each image in the dataset

	// Bad is the number of images of this batch that could not be read and were left out or
	// substituted.
	Bad int

	targets int // of an image
	inputs  []Input
}
