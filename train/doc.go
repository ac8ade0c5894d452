// Package train is the training loop: stochastic gradient descent on a network on a device, with hooks that observe it,
// extrapolate its weights (RNA), and write metrics and checkpoints.
//
// A [Run] needs a [Spec], plain data chosen by the user, and [Deps], supplied by the program. [Resolved] records the
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
// the loop operates on them and never holds the elements. Randomness has no state: the order and the augmentation of
// images are functions of the seed, the epoch and the index. So a checkpoint is small and complete, and a resumed run
// equals an uninterrupted one bit for bit.
//
// On an asynchronous device, a device.Pipeline, a step is issued before the previous step's results are read.
// Evaluations, checkpoints and hooks that may read the weights (all but a [hook.AsyncHook] and a [hook.QueuedHook])
// wait for it, so that results are the same. A non-finite loss is reported with its own step, and the state on disk is
// from before it.
//
// # Hooks
//
// A [hook.Hook] takes part in a run through the interfaces that it implements. With the methods of [hook.State] and the
// vectors of its network it temporarily puts other weights into the network, recalibrates BatchNorm, scores, judges and
// keeps them, or makes training continue from them. RNA and the averages of package train/average are such hooks; the
// example Average is one from outside.
//
// # Files
//
// The folder of a run, Out of its [Spec], holds
//
//	config.json         the Spec as resolved
//	metrics.jsonl       a hook.StepRecord for each step and a hook.EpochRecord for each epoch, one a line
//	final.safetensors   the weights at the end
//	best.safetensors    the best weights: see below
//	rna.safetensors     the weights extrapolated last
//	ema.safetensors     the power average of the iterates
//	kept                iterates that Spec.KeepEvery and KeepBest keep: package train/replay computes points from them
//	checkpoint          the state for Resume
//
// All but metrics.jsonl are complete at any time, even if the program is killed. Weights have torchvision's names and
// carry a [network.Meta].
//
// # Choosing
//
// If Spec.Holdout holds out a share of the training set, all weights are scored on it as well, and the best are chosen
// there, by the measure Spec.BestBy: the validation score then stays unbiased. Otherwise all weights are compared on the
// validation images.
//
// # Numbers
//
// Epochs are counted from 1 in everything that people read, and an epoch's learning rate is constant. Losses are means
// over images, in nats. Top-1 and top-5 are percentages of correctly classified images.
package train
