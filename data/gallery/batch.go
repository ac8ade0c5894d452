package gallery

import (
	"fmt"
	"io"
	"math"
	"slices"

	"onlinerna/data"
	"onlinerna/data/imaging"
	"onlinerna/internal/text"
)

// Original shows images as their files have them.
const Original = "original"

const network = "network"

// Views are the pictures of an image: of its file and as the network sees it, or one of them.
var Views = []string{"both", Original, network}

// Images are the images of a batch, in one of the Views.
func Images(b *data.Batch, view string) (list []Image) {
	for n := range b.N {
		x := Image{Index: b.Index[n], Label: int(b.Labels[n]), Loss: math.NaN(), Alone: view == network}
		if view != Original {
			x.Seen = imaging.New(b.Width, b.Height, b.Channels)
			for i := range x.Seen.Pix {
				x.Seen.Pix[i] = seen(b, n, i/b.Channels%b.Width, i/b.Channels/b.Width, i%b.Channels)
			}
		}
		list = append(list, x)
	}
	return list
}

// WriteCounts writes the number of images of each class.
func WriteCounts(out io.Writer, set data.Dataset) {
	counts := data.ClassCounts(set)
	order := make([]int, len(counts))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return counts[b] - counts[a] })
	fmt.Fprintf(out, "%.1f images a class, from %d to %d\n", float64(set.Len())/float64(len(counts)),
		counts[order[len(order)-1]], counts[order[0]])
	const most = 20
	for k, class := range order {
		if k >= most/2 && k < len(order)-most/2 {
			if k == most/2 {
				fmt.Fprintln(out, "  …")
			}
			continue
		}
		fmt.Fprintf(out, "  %6d  %s\n", counts[class], text.Printable(set.Classes()[class]))
	}
}

// seen is the sample that the network sees at (x, y) of image n: see data.Batch.
func seen(b *data.Batch, n, x, y, c int) uint8 {
	crop := b.Crops[3*n : 3*n+3]
	if crop[2] != 0 {
		x = b.Width - 1 - x
	}
	x, y = x+int(crop[1]), y+int(crop[0])
	if x < 0 || y < 0 || x >= b.Width || y >= b.Height {
		return 0
	}
	return b.Images[((n*b.Height+y)*b.Width+x)*b.Channels+c]
}

// Moments are the mean and the deviation of each channel, of samples as fractions of 255.
func Moments(b *data.Batch) (mean, std []float64) {
	count := float64(b.N * b.Height * b.Width)
	for c := range b.Channels {
		sum, squares := 0.0, 0.0
		for n := range b.N {
			for y := range b.Height {
				for x := range b.Width {
					v := float64(seen(b, n, x, y, c)) / 255
					sum, squares = sum+v, squares+v*v
				}
			}
		}
		mean = append(mean, sum/count)
		std = append(std, math.Sqrt(max(0, squares/count-sum/count*sum/count)))
	}
	return mean, std
}
