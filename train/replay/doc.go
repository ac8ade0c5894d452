// Package replay computes RNA, plain averages and moving averages with other windows and parameters for a finished run,
// from its kept iterates (Spec.KeepEvery), without training again.
//
//	r, err := replay.Open("runs/…", train.Deps{Device: dev}, nil)
//	if err != nil { … }
//	defer r.Close()
//	result, err := r.Curves(ctx, replay.Options{Windows: []int{5, 10}, Averages: []int{5}})
//
// Points are combined by package extrapolate, and get their BatchNorm statistics and scores from the run itself, as its
// hooks would: with the run's parameters and an iterate of each epoch, they equal the points of the training.
package replay
