// Package data reads labelled images and turns them into batches.
//
// A [Dataset] is a finite, indexed set of images. [Open] finds out the format of a place and gives
// its training and validation sets, [OpenEval] gives one set for evaluation. A [Transform] makes
// every image the same size, and a [Loader] decodes in parallel and yields a [Batch] at a time:
//
//	train, val, err := data.Open("imagenet", data.Options{})
//	profile, err := data.ProfileOf(train)
//	augment, err := profile.Train("auto", profile.Size)
//	loader, err := data.NewLoader(train, augment, data.LoaderOptions{
//		Batch: 256, Shuffle: true, Seed: 1, Substitute: true, MaxBad: data.DefaultMaxBad,
//	})
//	for batch, err := range loader.Epoch(ctx, epoch, 0) {
//		…
//	}
//
// # Formats
//
//   - ImageNet's official archives, read in place: ILSVRC2012_img_train.tar beside
//     ILSVRC2012_img_val.tar and ILSVRC2012_devkit_t12.tar.gz.
//   - Kaggle's ILSVRC/Data/CLS-LOC with LOC_val_solution.csv.
//   - Hugging Face's parquet: data/train-*.parquet beside data/validation-*.parquet, a struct
//     image of bytes (or a column of bytes) and an integer label. Images in pages that are neither
//     compressed nor coded by a dictionary are read in place.
//   - TFRecord: train-00000-of-01024 and so on, tf.train.Example with image/encoded and
//     image/class/label, which counts from 1 unless one is 0.
//   - WebDataset: train-*.tar beside val-*.tar or test-*.tar, in which
//     an image <key>.jpg (or another format) and <key>.cls make a sample; a <key>.json with "label"
//     may stand in for the .cls. timm's names are known too. A classes.txt
//     beside the shards gives the names of the classes, one a line.
//   - What package pack writes: such shards with an index beside each, or pixels (package
//     rawfile), train-*.rnaraw beside val-*.rnaraw.
//   - ImageFolder: train/<class>/…/x.JPEG beside val/, valid/, validation/ or test/. Classes and
//     files have torchvision's order. A flat val/ of ImageNet has its labels in Kaggle's file or the
//     devkit, beside it or above.
//   - IDX: MNIST's four files, gzip or not. Where only t10k is present its
//     first four fifths are for training and the rest for validation.
//   - "glyphs" or the empty path: ten stroke shapes, generated; see [Glyphs].
//
// Images are JPEG, PNG, WebP, BMP, GIF or TIFF; the content decides, not the name. What was
// passed over, and how classes were matched where it was not by name, is in the [Notes] of a set.
//
// Only the index of a set is held in memory, never its images, save for what cannot be read at
// random: gzipped IDX files and the generated glyphs.
//
// # Randomness
//
// Randomness has no state. The order of an epoch is a function of (seed, stream, epoch), and the
// augmentation of an image one of (seed, stream, epoch, index of the image). So batches do not
// depend on the number of workers, and an epoch entered at step k goes on as if it had never
// stopped. See [Rand].
//
// # Images that cannot be read
//
// Such an image is logged with its name and counted. When [LoaderOptions.Substitute] is set, as in
// training, its slot is filled with the next image in the order of the epoch that can be read
// (after the last comes the first), so batches keep their size; otherwise, as in evaluation, it is
// left out and the batch is smaller. An epoch ends with an error as soon as more than
// [LoaderOptions.MaxBad] of its images could not be read.
package data
