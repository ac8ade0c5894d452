// Package network is a model on a device, as training, evaluation and measurements use it: weights, gradients and BatchNorm statistics
// in flat vectors, the programs that run batches, weights files, scores, and which batch fits in memory. It knows no loop, no hooks and
// no schedules.
//
// There is one way to run a batch, on every device: its images, labels and numbers are written to a lane of a [device.Pipeline], a program
// that is bound to the lane runs, and the loss and the score come back through the lane when somebody waits for them. Where the device
// computes behind the host's back, batch k+1 is issued while batch k runs, and its work is one recording; elsewhere each call does its work
// before it returns.
//
// A loss that is not finite ends the updates: from the batch on that had it, steps of the optimiser leave the weights alone, also those
// that were issued before anybody looked at the loss, until the network gets other weights by [Network.Reset] or [Network.LoadWeights].
package network
