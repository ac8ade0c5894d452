// Package network is a model on a device, for training, evaluation and measurements: weights, gradients and BatchNorm
// statistics in flat vectors, the programs that run batches, weights files, scores, and the largest batch that fits in
// memory. It knows no loop, no hooks and no schedules.
//
// A batch runs the same way on every device: its images, labels and numbers are written to a lane of a
// [device.Pipeline], a program bound to the lane runs, and the loss and the score return through the lane when the
// caller waits for them. On an asynchronous device, batch k+1 is issued while batch k runs, and its work is one
// recording; on other devices each call does its work before it returns.
//
// A loss that is not finite ends the updates: from that batch on, optimiser steps leave the weights unchanged,
// including steps issued before the host read the loss, until [Network.Reset] or [Network.LoadWeights] sets other
// weights.
package network
