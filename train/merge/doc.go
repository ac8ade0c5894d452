// Package merge makes one checkpoint of several: averages of a run's checkpoints, and combinations of models with a
// common base. It reads and writes through package extrapolate, whose memory does not grow with the number of
// checkpoints and whose sums do not depend on the number of workers.
//
// Linear methods give each file a weight, Σ w_k θ_k:
//
//   - mean: 1/K each; weights: as given.
//   - ema: θ̄_0 = θ_0, θ̄_k = d θ̄_{k−1} + (1−d) θ_k.
//   - wsm: weights that make the sum equal to a learning-rate decay over the row (Tian et al. 2025, arXiv 2507.17634):
//     w_j = v_j − v_{j+1} with v_0 = 1, v_K = 0 and the decay's factors v between.
//   - power-ema: a power-function EMA of any width σ_rel, from stored EMAs or from the iterates
//     (Karras et al. 2024, arXiv 2312.02696).
//   - rna: package rna's coefficients, for all tensors together, for each layer or for each tensor.
//   - task: θ_0 + λ Σ w_k (θ_k − θ_0) (Ilharco et al. 2023, arXiv 2212.04089).
//
// The other methods work on each tensor: slerp moves along the great circle between two files; ties (Yadav et al. 2023,
// arXiv 2306.01708), dare (Yu et al. 2024, arXiv 2311.03099) and breadcrumbs (Davari and Belilovsky 2024, arXiv
// 2312.06795) drop elements of the differences from the base.
package merge
