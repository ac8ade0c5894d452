// Package rna is Regularized Nonlinear Acceleration (Scieur, Oyallon,
// d'Aspremont and Bach, "Online Regularized Nonlinear Acceleration"): it keeps
// the last N steps of an iterative method, solves an N×N system and gives an
// extrapolated point that is often far ahead of the last iterate.
//
// The caller owns the loop: push iterates into a [Window], ask it to [Window.Extrapolate]. [Solve] runs a loop of its
// own, with safeguards, for a fixed point of a function. Package theory has the bounds of the paper, and the table of
// its statements with their functions and tests.
//
// # Equations
//
// A method makes x_i = g(y_{i-1}). With X = [x_1 … x_N], Y = [y_0 … y_{N-1}] and
// the residuals R = X − Y, the coefficients c minimise
//
//	‖R c‖² + λ ‖R‖₂² ‖c‖²   subject to   Σ c_i = 1,
//
// that is (RᵀR + λ‖R‖₂² I) z = 1 and c = z/Σz (Algorithm 1). λ is relative
// to ‖R‖₂², the square of the largest singular value of R, so that one λ stays
// meaningful while residuals shrink. The extrapolated point is
//
//	y⁺ = Y c + β R c.
//
// λ → ∞ is the uniform average. λ = 0 is Anderson acceleration, which minimises ‖R c‖ alone, by a QR of the residuals
// ([Window.QR]). If several c minimise ‖R c‖ up to the rounding of the vectors, the shortest is returned. Residuals
// made of rounding errors are not used as directions. So with a chain of 25 or more, for which ‖c‖ would be 1e11, ‖R
// c‖ may stay above the least value that the stored digits allow.
//
// CNA (Algorithm 2, [Options].Tau) bounds the coefficients instead,
//
//	minimise ‖R c‖   subject to   Σ c_i = 1 and ‖c‖₂ ≤ (1+τ)/√N,
//
// and is RNA with another parameter: each λ has its τ(λ) = √N ‖c‖₂ − 1, each τ > 0 its λ(τ), and ‖c‖ falls as λ
// grows. ([Result] names both. The paper calls the norm increasing.) In all cases
// ‖c‖² ≤ (1 + 1/λ)/N. τ = 0 is the average.
//
// One decomposition, a [Spectrum], serves every λ and τ, and [Window.Search] lets a
// function of the caller's, a held-out loss say, choose λ among some, the average and the iterate itself.
//
// # The sign of β
//
// The paper prints R = X − Y in Algorithm 1, R = Y − X where it defines the
// residual, and y⁺ = (Y − βR) c. With R = X − Y the printed sign would make β = 1 a
// step backwards, 2Y c − X c; its proofs and its experiments use y⁺ = X c for
// β = 1. So β here is the negative of the printed one: β = 1, the default, gives
// X c, and β = 0 gives Y c.
//
// # In use
//
// Offline, the method runs untouched and the extrapolated point is one more point to
// evaluate:
//
//	Push(y_0); for each iterate x: Push(x), Extrapolate(dst)
//
// Online (the paper's online acceleration), it goes on from the extrapolated point y⁺, so that the y of the next
// iterate is not the iterate before:
//
//	for each iterate x = g(y): PushPair(y, x), Extrapolate(y)
//
// or, when y⁺ is taken only now and then, chains with a [Window.Break] between x and y⁺.
// A refused extrapolation leaves y unchanged, so initialise y as a copy of x.
//
// # Contents of a window
//
// N counts residuals, each the column of a pair (y, r). [Window.Push] chains iterates: each
// one is the x of the pair before and the y of the next, so N residuals cost N + 1
// vectors, and one vector more for every further chain in the window (see
// [Window.Break]). [Window.PushPair] stores y and x, and [Window.PushResidual] stores y and
// r (minus a gradient, say): both cost 2N vectors. A y_0 that awaits its x is one more.
//
// A push costs O(N d): one row of the Gram matrix RᵀR, with differences and sums in
// float64 whatever the storage, since a float32 Gram matrix gives wrong coefficients
// silently for λ below 1e-7. A push into a full window reads its vector twice, first to see
// that it is finite, so that a refused one costs nothing that is held. Rows and combinations run close to the speed of
// memory, by the loops of [onlinerna/rna/kernel], whose results have the same bits on all processors.
//
// Vectors live in a [Space]: float32 or float64, in host memory ([NewHost32], [NewHost64]), in files
// when a window is larger than memory ([NewFile32], [NewFile64]), or where another implementation
// puts them, a GPU's memory say. Results do not depend on the number of workers, nor on whether vectors are in
// memory or in files, bit for bit.
//
// # Saving
//
// [Window.State] is small and goes through JSON exactly; [Window.Vector] gives the vectors in order of age, to be
// read in any parts. [Restore] takes both back. A caller whose files have another order of elements permutes the
// elements that it reads and passes to Restore.
//
// # Accuracy
//
// The Gram matrix in float64 gives c to some 1e-16 times the condition number of RᵀR + λ‖R‖₂²I. If that exceeds
// 1e-12, [Window.Solve] sums the products of residuals in twice the precision, once each. [Result].Accuracy bounds
// the error in both cases. The largest relative error of c against 120 digits, for random residuals with N up to 20:
//
//	λ       cond(R) = 1e2      1e4      1e6      1e8
//	0             1e-16    1e-16    1e-16    1e-16
//	1e-12         1e-16    1e-16    1e-16    2e-16
//	1e-9          1e-16    1e-16    1e-16    2e-16
//	1e-6          1e-16    1e-16    2e-16    2e-16
//	1e-2          2e-14    2e-14    2e-14    2e-14
//	1             1e-15    1e-15    1e-15    1e-15
//
// (TestAccuracy prints it.) A scale of the vectors from 1e-300 to 1e300 does not change c.
//
// # Failures
//
// A push that holds NaN or ±Inf is refused with a [*NonFiniteError] and leaves the
// window as it was. A system that has no trustworthy solution gives a [Result] whose
// [Status] says why; no point is then written, and the caller keeps its last iterate.
package rna
