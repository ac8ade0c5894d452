package train

import (
	"fmt"

	"onlinerna/data"
	"onlinerna/data/imaging"
)

// listed is a set of n black images with the same label.
type listed struct{ n, classes, label int }

var _ data.Dataset = (*listed)(nil)

func (d *listed) Len() int { return d.n }
func (d *listed) Classes() (list []string) {
	for i := range d.classes {
		list = append(list, fmt.Sprint(i))
	}
	return list
}
func (d *listed) Channels() int   { return 3 }
func (d *listed) Label(int) int   { return d.label }
func (d *listed) Name(int) string { return "black" }
func (d *listed) Read(int, data.Region, *data.Scratch) (*imaging.Image, error) {
	return imaging.New(8, 8, 3), nil
}
