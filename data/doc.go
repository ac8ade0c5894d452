// Package data reads labelled images and turns them into batches.
//
// A [Dataset] is a finite, indexed set of images. [Open] detects the format of a place and returns its training and
// validation sets; [OpenEval] returns one set for evaluation. An [augment.Transform] makes every image the same size,
// and a [Loader] decodes in parallel and yields a [Batch] at a time:
//
//	train, val, err := data.Open("imagenet", data.Options{})
//	profile, err := data.ProfileOf(train)
//	augment, err := profile.Train("auto", profile.Size)
//	loader, err := data.NewLoader(train, augment, data.LoaderOptions{
//		Batch: 256, Shuffle: true, Seed: 1, Substitute: true, MaxBad: data.UsualBad,
//	})
//	for batch, err := range loader.Epoch(ctx, epoch, 0) {
//		…
//	}
//
// Package format reads the formats of data sets; its documentation lists them. Images are JPEG, PNG, WebP, BMP, GIF
// or TIFF, recognised by content, not by name. The [Notes] of a set name skipped files and classes not matched by
// name.
//
// # Randomness
//
// Randomness has no state. The order of an epoch is a function of (seed, stream, epoch), and the
// augmentation of an image one of (seed, stream, epoch, index of the image). So batches do not
// depend on the number of workers, and an epoch entered at step k goes on as if it had never
// stopped. See [random.Rand].
//
// # Images that cannot be read
//
// Such an image is logged with its name and counted. When [LoaderOptions.Substitute] is set, as in
// training, its slot is filled with the next image in the order of the epoch that can be read
// (after the last comes the first), so batches keep their size; otherwise, as in evaluation, it is
// left out and the batch is smaller. An epoch ends with an error as soon as more than
// [LoaderOptions.MaxBad] of its images could not be read.
package data
