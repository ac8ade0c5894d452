// Package extrapolate applies Regularized Nonlinear Acceleration to a series of checkpoints on disk, of any framework
// and any size.
//
// A [Checkpoint] is a safetensors file or a zip file of PyTorch's torch.save. A [Series] is an ordered list of
// checkpoints with the same tensors: K files make the residuals r_j = x_j − y_j, K − 1 of them if each y is the
// previous x. [Series.Measure] reads all files once, block by block, and computes the Gram matrix of the residuals;
// [Series.Solve] gives the coefficients c of package rna from that; and [Series.Write] reads the files a second time
// and writes the combination
//
//	y⁺ = Y c + β R c.
//
// Memory is a few blocks of each file for each worker, whatever the size of the files. Elements of all types are
// widened to float64; differences, products and combinations are float64 sums in a fixed order; the result is rounded
// once, to the files' type. So it does not depend on the number of workers.
//
// Floating-point tensors are combined and enter the Gram matrix, except for the running statistics of BatchNorm, which
// are combined only on demand and never enter it. All others, counters among them, are copied from the last file.
package extrapolate
