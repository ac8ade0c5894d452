// Support for sources generated from an optimiser's passes, after store.h, map.h and vector.h: see package update.

// Scalars in the order of package update.
enum { RATE, SCALE, STEPS, SHARE, DECAYS, RATIO, ROWS, COLUMNS, NORM, CORRECTION = NORM + 2, SCALARS = CORRECTION + 2 };
constexpr int coefficients = 9;

// Part is a range of elements with the same coefficients: of one tensor, with or without weight decay, with a factor of
// the learning rate. Rows are 0 unless the tensor is a matrix.
struct Part {
	long long off, len, tensor;
	int decays;
	float rate;
	long long rows, columns;
};

// STEP is the parameter list of a pass's kernels: parameters with their copy, gradient and state, their parts, and the
// step's numbers or the place of these. A step is skipped if its guard is not finite or the loss scale is marked bad.
// norm is the gradient's sum of squares if its norm is limited, by the step or by the optimiser.
#define STEP \
	float *w, T *copy, const float *grad, float *first, float *second, const Part *parts, int count, \
		float rate, float scale, float step, float share, const float *numbers, const float *guard, \
		const Scale *loss, double most, double own, const double *norm
#define NUMBERS rate, scale, step, share, numbers, loss, most, own, norm

// limited is a scale that shortens the gradient to at most `most`.
__device__ double limited(double scale, double most, double eps, const double *norm) {
	if (!norm || most <= 0) return scale;
	double k = most / (fabs(scale) * sqrt(*norm) + eps);
	return k >= 1 ? scale : scale * k;
}

// correction is 1 - betaᵗ.
__device__ double correction(double beta, double t) { return -expm1(t * log(beta)); }

// numbersOf sets the scalars that all parts share, except corrections.
__device__ void numbersOf(double *s, float rate, float scale, float step, float share, const float *numbers,
	const Scale *loss, double most, double own, const double *norm) {
	if (numbers) rate = numbers[0], scale = numbers[1], step = numbers[2], share = numbers[3];
	if (loss) step -= loss->skipped;
	s[RATE] = rate, s[STEPS] = step, s[SHARE] = share, s[RATIO] = 1;
	s[SCALE] = limited(limited(scale, most, 1e-6, norm), own, 0, norm);
}

// partOf sets the scalars of a part.
__device__ void partOf(double *s, Part p, double rate, double ratio) {
	s[RATE] = rate * p.rate, s[DECAYS] = p.decays, s[RATIO] = ratio, s[ROWS] = p.rows, s[COLUMNS] = p.columns;
}
