package data

import "onlinerna/data/random"

// balancedOrder draws n images such that all classes that have images occur equally often, or once more. A class takes
// its images in passes, each in a new order, so that none occurs a second time before all others have once. uses counts
// an image's earlier occurrences. The result depends on the set and the source alone.
func balancedOrder(ds Dataset, n int, source *random.Rand) (order, uses []int32) {
	byClass := make([][]int32, len(ds.Classes()))
	for i := range ds.Len() {
		l := ds.Label(i)
		byClass[l] = append(byClass[l], int32(i))
	}
	var present [][]int32
	for _, images := range byClass {
		if len(images) > 0 {
			present = append(present, images)
		}
	}
	first := make([]int32, len(present)) // classes that occur once more come first
	source.Perm(first)
	drawn, earlier := make([]int32, 0, n), make([]int32, 0, n)
	for k, class := range first {
		images := present[class]
		slots := n / len(present)
		if k < n%len(present) {
			slots++
		}
		pass := make([]int32, len(images))
		for s := range slots {
			if s%len(images) == 0 {
				source.Perm(pass)
			}
			drawn = append(drawn, images[pass[s%len(images)]])
			earlier = append(earlier, int32(s/len(images)))
		}
	}
	order, uses = make([]int32, n), make([]int32, n)
	mixed := make([]int32, n)
	source.Perm(mixed)
	for i, from := range mixed {
		order[i], uses[i] = drawn[from], earlier[from]
	}
	return order, uses
}
