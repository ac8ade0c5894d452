// Package theory has the statements of "Online Regularized Nonlinear Acceleration" as functions of the constants they
// name: [OptimalBound] and [ChebyshevRate] for λ = 0 on linear methods, [ConstrainedBound] and [ConstrainedChebyshev]
// for CNA, [PerturbationBound], [PerturbedBound], [StochasticBound], [NonlinearBound] and [AsymptoticBound] for
// iterations with errors. A [Scheme] is a method of their class. No training needs the package; its tests hold package
// rna against it.
//
// # The paper, row by row
//
// Each statement by its label in the paper's source, its functions and its tests. The functions say where they differ
// from the print.
//
//	statement | functions | tests
//	gradient step (gradient_step) | convex.GD | convex.TestPublishedCurves
//	its rate (conv_gradient_method) | convex.GradientBound | convex.TestBoundsHold, convex.TestBoundArguments
//	fast gradient (nesterov_algo) | convex.NesterovStrong, convex.NesterovConvex | convex.TestPublishedCurves, convex.TestMomentum
//	its rate (rate_nesterov) | convex.NesterovBound | convex.TestBoundsHold, convex.TestBoundArguments
//	quasi-Newton steps, L-BFGS | convex.LBFGS | convex.TestPublishedCurves
//	quasi-Newton steps, BFGS | convex.BFGS | convex.TestBFGSInverse, convex.TestEveryMethod
//	the chain x = g(y), y = x (rna-up) | rna.Window.Push | rna.TestTrajectoryByHand, rna.TestModesAgree
//	residuals R = X − Y (residual) | rna.Window.PushPair, rna.Window.PushResidual | rna.TestTrajectoryByHand, rna.TestModesAgree
//	c minimises ‖Rc‖² + λ‖R‖²‖c‖², Σc = 1 | rna.Window.Solve, rna.Spectrum.Solve | rna.TestSolveByHand, rna.TestAccuracy
//	Anderson acceleration, λ = 0 | rna.Window.QR | rna.TestAndersonByHand, rna.TestGMRES, rna.TestAndersonOfChains
//	the class of schemes (general_iteration) | Scheme, Scheme.Append | TestSchemePolynomial, TestOptimalBound
//	consistency of coefficients | Scheme.Append | TestSchemePolynomial
//	matrices L_i (general_iteration_matrix, recurence_L) | Scheme.L, Scheme.Y | TestSchemePolynomial
//	polynomials of iterates (poly_iter) | Scheme.Polynomial | TestSchemePolynomial
//	Algorithm 1, RNA (rna) | rna.Window.Extrapolate | rna.TestTrajectoryByHand, rna.TestSolveByHand, rna.TestCombination
//	Algorithm 2, CNA (cna) | rna.Spectrum.Constrain | rna.TestConstrainByHand, rna.TestConstrain
//	complexity: O(N²d) at once | rna.Gram | rna.TestGram
//	complexity: O(Nd) on the fly | rna.Window.Push | rna.TestGram, rna.TestFileReads
//	λ(τ) and τ(λ) (nonlinear_equation) | rna.Spectrum.Constrain, rna.Result | rna.TestConstrain, rna.TestConstrainedAccuracy
//	‖c(λ)‖ falls as λ grows | rna.Spectrum.Solve | rna.TestNormBound
//	bound on ‖c‖ (bound_norm_lambda) | NormBound | rna.TestNormBound, TestNormBoundValue, TestNormBoundAttained
//	optimal rate, by polynomials (optimal_rate) | OptimalBound, MixingNorm | TestOptimalBound, TestOptimalBoundAttained, rna.TestGMRES
//	optimal rate, by κ (optimal_rate) | ChebyshevRate, OptimalBound | TestChebyshevRate, TestBounds, TestOptimalBound
//	finite termination, N > d (optimal_rate) | OptimalBound | TestFiniteTermination
//	online acceleration (online_rna) | rna.Window.PushPair, rna.Window.Extrapolate | TestOnlineBound
//	c_N ≠ 0, or the optimum (online_accel_structure) | Scheme.Append | TestFiniteTermination
//	constrained Chebyshev polynomials | ConstrainedChebyshev | TestConstrainedChebyshevByHand, TestConstrainedChebyshev
//	rate of CNA (rate_constrained) | ConstrainedBound | TestBounds, TestPerturbedBound, TestConstrainedBoundAttained
//	perturbed iterations and P (perturbation_matrix) | PerturbationBound | TestPerturbationBound
//	‖P‖ by ‖E‖ (explicit_formula_perturbation) | PerturbationBound, Scheme.Norms | TestPerturbationBound, TestPerturbationBoundAttained, TestBoundsByHand
//	accuracy with errors (convergence_perturbation) | PerturbedBound | TestPerturbedBound, TestErrorBoundsAttained
//	gradient steps with noise (convergence_stoch_gradient) | StochasticBound | TestStochasticBound, TestStochasticBoundOfSamples, TestErrorBoundsAttained
//	two regimes of noise | StochasticBound, rna.NoiseCoefficients, rna.FromUniform | TestStochasticBound, rna.TestNoiseCoefficients
//	nonlinear errors (conv_nonlinear) | NonlinearBound | TestNonlinearBound, TestErrorBoundsAttained
//	asymptotic rate, τ and λ (asymptotic_optimal_rate) | AsymptoticBound, AsymptoticOrders | TestAsymptoticBound, TestBoundsByHand
//	smooth functions (bound_function_smooth_gradient) | LinearisationError, LinearisationGamma | TestNonlinearBound, TestLinearisationAttained
//	Algorithm 3, optimal and adaptive (general_nesterov_step) | convex.OptimalAdaptive, convex.PrintedAdaptive | convex.TestBoundsHold, convex.TestPrintedAdaptive
//	Algorithm 3 is optimal | convex.NesterovBound | convex.TestBoundsHold
//	logistic regression, deterministic (detem) | convex.Minimize, convex.Risk | convex.TestPublishedCurves, convex.TestOptimum
//	logistic regression, stochastic (stoch) | convex.MinimizeSum | convex.TestPublishedStochastic, convex.TestStochasticAgainstNumpy
//	RNA on SGD comes no further than its noise | convex.Offline | convex.TestPublishedStochastic, convex.TestStochasticConverges
//	Anderson is unstable (comparison_reg) | study.Anderson | study.TestAndersonIsUnstable
//	MNIST, one against all (mnist) | study.Digits | cmd.TestDigitRanking, cmd.TestLogregIDX
//	RNA on nets, offline and online (resnet18) | rna.Window.Extrapolate, rna.Window.Break | train.TestOffline, train.TestOnline, cmd.TestStudy
//	speed of RNA (speed) | rna.Window.Push, rna.Window.Extrapolate | cmd.TestBenchRNA
//
// Not shown by a test: the published curves of Madelon and Sido0, which are not at hand, and the validation error on
// ImageNet.
package theory
