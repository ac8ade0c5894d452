// Package replay computes RNA, plain averages and moving averages with other windows and parameters for a run that is
// over, from the iterates that it kept (Spec.KeepEvery), without training again.
//
//	r, err := replay.Open("runs/…", dev, nil)
//	if err != nil { … }
//	defer r.Close()
//	result, err := r.Curves(ctx, replay.Options{Windows: []int{5, 10}, Averages: []int{5}})
//
// Points are combined by package extrapolate, and get their BatchNorm statistics and their scores from the run itself,
// as its hooks would: with the parameters of the training, and an iterate of each epoch, they are the points of the
// training.
package replay
