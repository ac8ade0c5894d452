// Arithmetic on the flat vectors of parameters, gradients and momentum. Parameters that activations of 16 bits meet have a narrow copy,
// or none: who writes them writes it.

constexpr int threads = 256;

__device__ void write(float *v, T *copy, long long i, float a) {
	v[i] = a;
	if (copy) copy[i] = narrow(a);
}

extern "C" __global__ void vec_fill(float *v, T *copy, float a, long long n) {
	EACH(i, n) write(v, copy, i, a);
}

extern "C" __global__ void vec_add_scaled(float *v, T *copy, float a, const float *x, long long n) {
	EACH(i, n) write(v, copy, i, v[i] + a * x[i]);
}

extern "C" __global__ void vec_narrow(const float *v, T *copy, long long n) {
	elements(n, packed(v) && packed(copy), [=](auto width, long long i) {
		WIDTH(width);
		float a[N];
		for (int j = 0; j < N; j++) a[j] = v[i + j];
		store(copy + i, a);
	});
}

// Scale is the scale of the loss and how it came about.
struct Scale {
	float scale, inverse;
	int good;  // steps since it changed
	int bad;   // the gradient of the step has elements that are not finite
	long long skipped;
};

// strange says whether a number is NaN or infinite.
__device__ bool strange(float x) { return (__float_as_uint(x) & 0x7f800000u) == 0x7f800000u; }

// vec_check marks a gradient that is not finite.
extern "C" __global__ void vec_check(const float *grad, long long n, Scale *s) {
	int bad = 0;
	EACH(i, n) bad |= strange(grad[i]);
	if (bad) s->bad = 1;
}

// vec_next_scale ends a step: a gradient that was not finite halves the scale, many that were double it.
extern "C" __global__ void vec_next_scale(Scale *s, int interval) {
	float scale = s->scale;
	if (s->bad) {
		scale /= 2;
		s->skipped++;
		s->good = 0;
	} else if (++s->good == interval) {
		scale *= 2;
		s->good = 0;
	}
	if (scale >= 0x1p-100f && scale <= 0x1p100f) {  // it and its inverse stay numbers
		s->scale = scale;
		s->inverse = 1 / scale;
	}
	s->bad = 0;
}

// within says whether element i lies in one of the spans [from, to), which are sorted.
__device__ bool within(long long i, const long long *spans, int count) {
	int lo = 0, hi = count;  // the first span that starts behind i
	while (lo < hi) {
		int mid = (lo + hi) / 2;
		if (spans[2 * mid] <= i) lo = mid + 1;
		else hi = mid;
	}
	return lo > 0 && i < spans[2 * lo - 1];
}

// vec_sgd is a step of stochastic gradient descent; elements in the spans do not decay. Where there are numbers they are rate and scale:
// a step that is replayed reads them when it runs. A step whose guard is not finite, or that is bad for the scale of the loss, is not made.
extern "C" __global__ void vec_sgd(float *w, T *copy, const float *grad, float *momentum, long long n, float rate, float mu, float decay, float scale,
                                   int nesterov, const long long *spans, int count, const float *numbers, const float *guard, const Scale *s) {
	if (s && s->bad || guard && strange(*guard)) return;
	if (numbers) rate = numbers[0], scale = numbers[1];
	EACH(i, n) {
		float g = scale * grad[i], x = w[i];
		if (decay != 0 && !within(i, spans, count)) g += decay * x;
		float m = mu * momentum[i] + g;
		momentum[i] = m;
		write(w, copy, i, x - rate * (nesterov ? g + mu * m : m));
	}
}

// reduce gives thread 0 of a block the sum of its threads.
__device__ double reduce(double v) {
	__shared__ double cells[threads];
	cells[threadIdx.x] = v;
	__syncthreads();
	for (int half = threads / 2; half > 0; half /= 2) {
		if (threadIdx.x < half) cells[threadIdx.x] += cells[threadIdx.x + half];
		__syncthreads();
	}
	return cells[0];
}

// vec_squares writes the sum of squares of each block.
extern "C" __global__ void vec_squares(const float *v, long long n, double *sums) {
	double s = 0;
	EACH(i, n) s += (double)v[i] * v[i];
	s = reduce(s);
	if (threadIdx.x == 0) sums[blockIdx.x] = s;
}

// vec_strange writes the number of elements of each block that are NaN or infinite.
extern "C" __global__ void vec_strange(const float *v, long long n, double *sums) {
	double s = 0;
	EACH(i, n) s += strange(v[i]);
	s = reduce(s);
	if (threadIdx.x == 0) sums[blockIdx.x] = s;
}

// vec_total writes the sum of the blocks' sums behind them. It is one block.
extern "C" __global__ void vec_total(double *sums, int n) {
	double s = 0;
	for (int i = threadIdx.x; i < n; i += threads) s += sums[i];
	s = reduce(s);
	if (threadIdx.x == 0) sums[n] = s;
}
