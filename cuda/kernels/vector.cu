// Arithmetic on the flat vectors of parameters, gradients and the state of optimisers.

extern "C" __global__ void __launch_bounds__(threads, 4) vec_fill(float *v, T *copy, float a, long long n) {
	EACH(i, n) write(v, copy, i, a);
}

extern "C" __global__ void __launch_bounds__(threads, 4) vec_add_scaled(float *v, T *copy, float a, const float *x,
	long long n) {
	EACH(i, n) write(v, copy, i, v[i] + a * x[i]);
}

extern "C" __global__ void __launch_bounds__(threads, 4) vec_lerp(float *v, T *copy, float a, const float *x,
	long long n) {
	EACH(i, n) write(v, copy, i, v[i] + a * (x[i] - v[i]));
}

extern "C" __global__ void __launch_bounds__(threads, 4) vec_narrow(const float *v, T *copy, long long n) {
	elements(n, packed(v) && packed(copy), [=](auto width, long long i) {
		WIDTH(width);
		float a[N];
		for (int j = 0; j < N; j++) a[j] = v[i + j];
		store(copy + i, a);
	});
}

// vec_check marks a gradient that is not finite.
extern "C" __global__ void __launch_bounds__(threads, 4) vec_check(const float *grad, long long n, Scale *s) {
	int bad = 0;
	EACH(i, n) bad |= strange(grad[i]);
	if (bad) atomicExch(&s->bad, 1);
}

// vec_next_scale ends a step: a gradient that is not finite halves the scale, many finite ones in a row double it.
extern "C" __global__ void __launch_bounds__(threads, 4) vec_next_scale(Scale *s, int interval) {
	float scale = s->scale;
	if (s->bad) {
		scale /= 2;
		s->skipped++;
		s->good = 0;
	} else if (++s->good == interval) {
		scale *= 2;
		s->good = 0;
	}
	if (scale >= 0x1p-100f && scale <= 0x1p100f) {  // so that it and its inverse stay finite
		s->scale = scale;
		s->inverse = 1 / scale;
	}
	s->bad = 0;
}

// vec_squares writes the sum of squares of each block.
extern "C" __global__ void __launch_bounds__(threads, 4) vec_squares(const float *v, long long n, double *sums) {
	double s = 0;
	EACH(i, n) s += (double)v[i] * v[i];
	s = reduce(s);
	if (threadIdx.x == 0) sums[blockIdx.x] = s;
}

// vec_strange writes each block's number of elements that are NaN or infinite.
extern "C" __global__ void __launch_bounds__(threads, 4) vec_strange(const float *v, long long n, double *sums) {
	double s = 0;
	EACH(i, n) s += strange(v[i]);
	s = reduce(s);
	if (threadIdx.x == 0) sums[blockIdx.x] = s;
}

// vec_total writes the sum of the blocks' sums after them, in one block.
extern "C" __global__ void __launch_bounds__(threads, 4) vec_total(double *sums, int n) {
	double s = 0;
	for (int i = threadIdx.x; i < n; i += threads) s += sums[i];
	s = reduce(s);
	if (threadIdx.x == 0) sums[n] = s;
}
