// Package train is the training loop: stochastic gradient descent on a network that lives on a device, with hooks that
// watch it, extrapolate its weights (RNA), write metrics and checkpoints.
//
// A [Run] needs a [Spec], pure data that a user chooses, and [Deps] that the program gives it. [Resolved] records the
// Spec with its defaults:
//
//	run, err := train.New(train.Spec{Data: "glyphs", Epochs: 15}, train.Deps{Device: dev})
//	if err != nil { … }
//	defer run.Close()
//	err = run.Train(ctx)
//
// # State
//
// The weights of a model lie in one flat [device.Vector], gradients, momentum and BatchNorm statistics in three more;
// the loop is arithmetic on them and never holds the numbers. Randomness has no state: the order and the augmentation
// of images are functions of the seed, the epoch and the index. So a checkpoint is small and complete, and a run that
// is resumed from one goes on, bit for bit, as if it had never stopped.
//
// On a device that works behind the host's back, a device.Pipeline, a step is issued before the results of the one
// before are looked at. Evaluations, checkpoints and hooks that may look at the weights (all but a [hook.AsyncHook] and
// a [hook.QueuedHook]) wait for it, so that results are the same; a loss that is not finite is reported with its own
// step, and what is on disk is from before it.
//
// # Hooks
//
// A [hook.Hook] takes part in a run through the interfaces that it implements. With the methods of [hook.State] and the
// vectors of its network it puts other weights into the network for a while, recalibrates BatchNorm, scores, judges and
// keeps them, or has training go on from them. RNA and the averages of package train/average are such hooks; the
// example Average is one from outside.
//
// # Files
//
// The folder of a run, Out of its [Spec], holds
//
//	config.json         the Spec as resolved
//	metrics.jsonl       a hook.StepRecord for each step and a hook.EpochRecord for each epoch, one a line
//	final.safetensors   the weights at the end
//	best.safetensors    the weights of the lowest loss: see below
//	rna.safetensors     the weights extrapolated last
//	ema.safetensors     the power average of the iterates
//	kept                iterates that Spec.KeepEvery and KeepBest keep: package train/replay computes points from them
//	checkpoint          what Resume needs
//
// All but metrics.jsonl are whole at any time, also when the program is killed. Weights have torchvision's names and
// carry a [network.Meta].
//
// # Choosing
//
// With a share of the training set held out, Spec.Holdout, all weights that are scored are scored on it as well, and
// the best are those of the lowest loss there: the validation images then still tell what to expect. Without, the best
// are SGD's, the extrapolated ones or the power average, by validation loss.
//
// # Numbers
//
// Epochs are counted from 1 in everything that people read, and an epoch's learning rate is constant. Losses are means
// over images, in nats. Top-1 and top-5 are percentages of images that are right.
package train
