// Package convex minimises smooth convex functions by first-order methods and by Regularized Nonlinear
// Acceleration of them: the convex experiments of Scieur, Oyallon, d'Aspremont and Bach, "Online Regularized
// Nonlinear Acceleration".
//
// [Minimize] takes any function with a gradient, and needs no constants; RNA on gradient descent (`Online{GD}`) is
// often orders of magnitude ahead of the descent. [MinimizeSum] goes by the samples of a [Risk], the regularised loss
// of a linear model on dense or sparse [Data].
//
// # The protocol
//
// Deterministic methods backtrack: from y they step to w⁺ = y − ∇f(y)/L_k, doubling L_k while f(w⁺) > f(y) −
// ‖∇f(y)‖²/(2L_k) and L_k < L, and halve L_k after each iteration. Momentum follows Nesterov's α sequence, with q
// = μ/L ([NesterovStrong]), q = 0 ([NesterovConvex]) or none ([GD]).
//
// RNA's window holds the last N points y at which gradients were taken, and the gradients U as residuals:
// w_rna = Y c − U c/L. Offline it is one more point to evaluate. Online, w_ls = (w_rna + βw)/(1 + β) with the w
// before takes the place of w⁺ if f is lower there, so that w_rna is the next y. Then the curve
// shows f(w_rna), otherwise f(w⁺).
//
// With these choices the values on the Sonar data are those that the authors published, to rounding: online RNA
// is chaotic, and parts from them after some ten iterations. L-BFGS is minFunc's. Sums by samples have the published
// rates (SVRG, SAGA, Katyusha) and noise floors (SGD).
//
// Algorithm 3 as printed is not optimal. [OptimalAdaptive] keeps Nesterov's estimate sequence, and with it
// [NesterovBound]; [PrintedAdaptive] is the printed one, which exceeds that bound.
//
// # Speed
//
// The risk of a linear model is evaluated in one pass over the data an iteration: the predictions xᵢᵀw at all points
// that an iteration may choose from are combinations of two products, and the same pass gives the gradients at those
// points. Dense features that are multiples of a step, such as integers scaled to [0, 1], are read from a copy in
// 16-bit numbers, a quarter of the size. Passes use AVX-512, AVX2 or NEON where the processor has them; the
// environment variable RNA_CPU, one of avx512, avx2, neon and go, lowers that.
//
// Runs are deterministic: they depend on the seed and on the kind of processor, not on the number of processors.
package convex
