// Package train is the training loop: stochastic gradient descent on a network that lives on a device,
// with hooks that watch it, extrapolate its weights (RNA), write metrics and checkpoints.
//
// A [Run] is made from a [Config], pure data, and [Deps], what the program gives it, and trained:
//
//	run, err := train.New(train.Config{Data: "glyphs", Epochs: 15}, train.Deps{Device: dev})
//	if err != nil { … }
//	defer run.Close()
//	err = run.Train(ctx)
//
// # State
//
// The weights of a model lie in one flat [device.Vector], gradients, momentum and BatchNorm statistics
// in three more; the loop is arithmetic on them and never holds the numbers. Randomness has
// no state: the order and the augmentation of images are functions of the seed, the epoch and the
// index. So a checkpoint is small and complete, and a run that is resumed from one goes on, bit for bit,
// as if it had never stopped.
//
// On a device that works behind the host's back, a device.Pipeline, a step is issued before the results of the one before are looked at.
// Evaluations, checkpoints and hooks that may look at the weights (all but an [AsyncHook] and a [QueuedHook]) wait for it, so that results are the
// same; a loss that is not finite is reported with its own step, and what is on disk is from before it.
//
// # Hooks
//
// A [Hook] takes part in a run by the interfaces that it implements, and does what it does by the methods of [State] and the vectors of its
// network: it looks at other weights aside, gives them statistics, scores, judges and keeps them, or puts them in the iterate's place. RNA
// and the averages, package train/average, are such hooks; the example Average is one from outside. What hooks and the loop
// share lies in train/hook, and what a run is given in train/config; both are here by the names of this package.
//
// # Files
//
// The folder of a run, Out of its [Config], holds
//
//	config.json         the config as resolved
//	metrics.jsonl       a StepRecord for each step and an EpochRecord for each epoch, one a line
//	final.safetensors   the weights at the end
//	best.safetensors    the weights of the lowest loss: see below
//	rna.safetensors     the weights extrapolated last
//	ema.safetensors     the power average of the iterates
//	kept                iterates that Config.KeepEvery and KeepBest keep: package train/replay computes points from them
//	checkpoint          what Resume needs
//
// All but metrics.jsonl are whole at any time, also when the program is killed. Weights have torchvision's names
// and carry a [Meta].
//
// # Choosing
//
// With a share of the training set held out, Config.Holdout, all weights that are scored are scored on it as well, and
// the best are those of the lowest loss there: the validation images then still tell what to expect. Without,
// the best are SGD's, the extrapolated ones or the power average, by validation loss.
//
// # Numbers
//
// Epochs are counted from 1 in everything that people read, and an epoch's learning rate is constant.
// Losses are means over images, in nats. Top-1 and top-5 are percentages of images that are right.
package train
