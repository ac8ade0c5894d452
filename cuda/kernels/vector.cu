// Arithmetic on the flat vectors of parameters, gradients and the state of optimisers. Parameters that activations of 16 bits meet have a narrow copy,
// or none: who writes them writes it.

constexpr int threads = 256;

__device__ void write(float *v, T *copy, long long i, float a) {
	v[i] = a;
	if (copy) copy[i] = narrow(a);
}

extern "C" __global__ void __launch_bounds__(threads, 4) vec_fill(float *v, T *copy, float a, long long n) {
	EACH(i, n) write(v, copy, i, a);
}

extern "C" __global__ void __launch_bounds__(threads, 4) vec_add_scaled(float *v, T *copy, float a, const float *x, long long n) {
	EACH(i, n) write(v, copy, i, v[i] + a * x[i]);
}

extern "C" __global__ void __launch_bounds__(threads, 4) vec_lerp(float *v, T *copy, float a, const float *x, long long n) {
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
extern "C" __global__ void __launch_bounds__(threads, 4) vec_check(const float *grad, long long n, Scale *s) {
	int bad = 0;
	EACH(i, n) bad |= strange(grad[i]);
	if (bad) atomicExch(&s->bad, 1);
}

// vec_next_scale ends a step: a gradient that was not finite halves the scale, many that were double it.
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
	if (scale >= 0x1p-100f && scale <= 0x1p100f) {  // it and its inverse stay numbers
		s->scale = scale;
		s->inverse = 1 / scale;
	}
	s->bad = 0;
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
extern "C" __global__ void __launch_bounds__(threads, 4) vec_squares(const float *v, long long n, double *sums) {
	double s = 0;
	EACH(i, n) s += (double)v[i] * v[i];
	s = reduce(s);
	if (threadIdx.x == 0) sums[blockIdx.x] = s;
}

// vec_strange writes the number of elements of each block that are NaN or infinite.
extern "C" __global__ void __launch_bounds__(threads, 4) vec_strange(const float *v, long long n, double *sums) {
	double s = 0;
	EACH(i, n) s += strange(v[i]);
	s = reduce(s);
	if (threadIdx.x == 0) sums[blockIdx.x] = s;
}

// vec_total writes the sum of the blocks' sums behind them. It is one block.
extern "C" __global__ void __launch_bounds__(threads, 4) vec_total(double *sums, int n) {
	double s = 0;
	for (int i = threadIdx.x; i < n; i += threads) s += sums[i];
	s = reduce(s);
	if (threadIdx.x == 0) sums[n] = s;
}

// Part is elements with the same coefficients: of one tensor, that decay or do not, with a factor of the learning rate.
struct Part {
	long long off, len, tensor;
	int decays;
	float rate;
};

// Numbers are what changes from step to step.
struct Numbers {
	float rate, scale, step;
};

// STEP is the parameters of all kernels of a step: parameters, with their copy, gradient and state; their parts; hyperparameters; and the
// numbers, or where they are read from. A step whose guard is not finite, or that is bad for the scale of the loss, is not made. most is the
// largest norm of the gradient or 0, and norm the sum of its squares where there is such a norm, this or the optimiser's.
#define STEP                                                                                                                         \
	float *w, T *copy, const float *grad, float *first, float *second, const Part *parts, int count, double h0, double h1, double h2, \
		double h3, double h4, double h5, double h6, double h7, float rate, float scale, float step, const float *numbers,             \
		const float *guard, const Scale *loss, double most, const double *norm
#define HYPER {h0, h1, h2, h3, h4, h5, h6, h7}

struct Hyper {
	double v[8];
};

__device__ float *sharedCoefficients() {
	__shared__ float c[8];
	return c;
}

// clipped is the scale by which the gradient is no longer than most, as by torch.nn.utils.clip_grad_norm_.
__device__ float clipped(float scale, double most, const double *norm) {
	double k = norm && most > 0 ? most / (fabs(scale) * sqrt(*norm) + 1e-6) : 1;
	return k < 1 ? scale * k : scale;
}

// coefficients makes those of Rule for parts that decay, for all threads of a block. It says whether the step is to be made.
template <class Rule>
__device__ bool coefficients(float (&c)[8], Hyper h, Numbers n, const float *numbers, const float *guard, const Scale *loss, double most,
							 const double *norm) {
	if (loss && loss->bad || guard && strange(*guard)) return false;
	float *shared = sharedCoefficients();
	if (threadIdx.x == 0) {
		if (numbers) n = {numbers[0], numbers[1], numbers[2]};
		if (loss) n.step -= loss->skipped;
		n.scale = clipped(n.scale, most, norm);
		Rule().coefficients(shared, h.v, n, norm);
	}
	__syncthreads();
	for (int j = 0; j < 8; j++) c[j] = shared[j];
	return true;
}

// apply changes parameters and state. ratios are those of tensors, or nothing.
template <class Rule> __device__ void apply(STEP, const float *ratios) {
	float all[8];
	if (!coefficients<Rule>(all, HYPER, {rate, scale, step}, numbers, guard, loss, most, norm)) return;
	for (int k = blockIdx.x; k < count; k += gridDim.x) {
		Part p = parts[k];
		float c[8];
		for (int j = 0; j < 8; j++) c[j] = all[j];
		Rule().rate(c, p.rate);
		Rule().part(c, p.decays, ratios ? ratios[p.tensor] : 1);
		for (long long i = p.off + threadIdx.x; i < p.off + p.len; i += blockDim.x) write(w, copy, i, Rule().apply(w[i], grad, first, second, i, c));
	}
}

// measure writes two sums of squares for each part.
template <class Rule> __device__ void measure(STEP, double *sums) {
	float all[8];
	if (!coefficients<Rule>(all, HYPER, {rate, scale, step}, numbers, guard, loss, most, norm)) return;
	for (int k = blockIdx.x; k < count; k += gridDim.x) {
		Part p = parts[k];
		float c[8];
		for (int j = 0; j < 8; j++) c[j] = all[j];
		Rule().rate(c, p.rate);
		Rule().part(c, p.decays, 1);
		double x = 0, y = 0;
		for (long long i = p.off + threadIdx.x; i < p.off + p.len; i += blockDim.x) {
			float a = w[i], b = Rule().measure(a, grad, first, second, i, c);
			x += (double)a * a;
			y += (double)b * b;
		}
		x = reduce(x);
		__syncthreads();
		y = reduce(y);
		__syncthreads();
		if (threadIdx.x == 0) sums[2 * k] = x, sums[2 * k + 1] = y;
	}
}

// ratios adds up the sums of each tensor's parts, of which the first is given. A block is a tensor.
template <class Rule> __device__ void ratios(STEP, const double *sums, const int *starts, float *ratio) {
	double x = 0, y = 0;
	int from = starts[blockIdx.x], to = starts[blockIdx.x + 1];
	for (int k = from + threadIdx.x; k < to; k += threads) {
		x += sums[2 * k];
		y += sums[2 * k + 1];
	}
	x = reduce(x);
	__syncthreads();
	y = reduce(y);
	if (threadIdx.x != 0) return;
	Hyper h = HYPER;
	float s = clipped(numbers ? numbers[1] : scale, most, norm);
	ratio[blockIdx.x] = from < to && parts[from].decays && x > 0 && y > 0 ? Rule().ratio(h.v, s, sqrt(x), sqrt(y)) : 1;
}

#define ARGUMENTS \
	w, copy, grad, first, second, parts, count, h0, h1, h2, h3, h4, h5, h6, h7, rate, scale, step, numbers, guard, loss, most, norm

// The rules are those of package device, whose order hyperparameters and coefficients have.

template <bool Nesterov> struct Momentum {
	__device__ void coefficients(float *c, const double *h, Numbers n, const double *) {
		c[0] = n.rate, c[1] = h[0], c[2] = h[1], c[3] = n.scale;
	}
	__device__ void rate(float *c, float factor) { c[0] *= factor; }
	__device__ void part(float *c, bool decays, float ratio) {
		c[2] = decays ? c[2] * ratio : 0;
		c[3] *= ratio;
	}
	__device__ float apply(float w, const float *grad, float *momentum, float *, long long i, const float *c) {
		float g = c[3] * grad[i] + c[2] * w;
		float m = c[1] * momentum[i] + g;
		momentum[i] = m;
		return w - c[0] * (Nesterov ? g + c[1] * m : m);
	}
};

extern "C" __global__ void __launch_bounds__(threads, 4) update_momentum(STEP, const float *ratios) { apply<Momentum<false>>(ARGUMENTS, ratios); }
extern "C" __global__ void __launch_bounds__(threads, 4) update_nesterov(STEP, const float *ratios) { apply<Momentum<true>>(ARGUMENTS, ratios); }

struct LARS : Momentum<false> {
	__device__ float measure(float, const float *grad, float *, float *, long long i, const float *) { return grad[i]; }
	__device__ float ratio(const double *h, float scale, double w, double g) {
		return h[2] * w / (fabs(scale) * g + h[1] * w + h[3]);
	}
};

extern "C" __global__ void __launch_bounds__(threads, 4) measure_lars(STEP, double *sums) { measure<LARS>(ARGUMENTS, sums); }
extern "C" __global__ void __launch_bounds__(threads, 4) ratios_lars(STEP, const double *sums, const int *starts, float *ratio) {
	ratios<LARS>(ARGUMENTS, sums, starts, ratio);
}

// Adam is what optimisers of its kind share.
struct Adam {
	// correction is 1 - betaᵗ.
	__device__ double correction(double beta, double t) { return -expm1(t * log(beta)); }
	__device__ double coefficients(float *c, const double *h, Numbers n) {
		double b = sqrt(correction(h[1], n.step));
		c[0] = h[0], c[1] = (1 - h[0]) * n.scale, c[2] = h[1], c[3] = sqrt(1 - h[1]) * n.scale, c[4] = h[2] * b;
		return b / correction(h[0], n.step);
	}
	__device__ void moments(float g, float *m, float *v, const float *c) {
		float d = c[3] * g;
		*m = c[0] * *m + c[1] * g;
		*v = c[2] * *v + d * d;
	}
};

struct AdamW {
	__device__ void coefficients(float *c, const double *h, Numbers n, const double *) {
		c[5] = n.rate * Adam().coefficients(c, h, n);
		c[6] = 1 - n.rate * h[3];
	}
	__device__ void rate(float *c, float factor) {
		c[5] *= factor;
		if (factor != 1) c[6] = 1 - factor * (1 - c[6]);
	}
	__device__ void part(float *c, bool decays, float) {
		if (!decays) c[6] = 1;
	}
	__device__ float apply(float w, const float *grad, float *m, float *v, long long i, const float *c) {
		Adam().moments(grad[i], m + i, v + i, c);
		return c[6] * w - c[5] * m[i] / (sqrtf(v[i]) + c[4]);
	}
};

extern "C" __global__ void __launch_bounds__(threads, 4) update_adamw(STEP, const float *ratios) { apply<AdamW>(ARGUMENTS, ratios); }

struct LAMB {
	__device__ void coefficients(float *c, const double *h, Numbers n, const double *norm) {
		if (norm && h[4] > 0) {
			double k = fabs(n.scale) * sqrt(*norm) / h[4];
			if (!(k <= 1)) n.scale /= k;
		}
		c[5] = Adam().coefficients(c, h, n);
		c[6] = h[3], c[7] = n.rate;
	}
	__device__ void rate(float *c, float factor) { c[7] *= factor; }
	__device__ void part(float *c, bool decays, float ratio) {
		if (!decays) c[6] = 0;
		c[7] *= ratio;
	}
	__device__ float step(float w, float m, float v, const float *c) { return c[5] * m / (sqrtf(v) + c[4]) + c[6] * w; }
	__device__ float measure(float w, const float *grad, float *m, float *v, long long i, const float *c) {
		Adam().moments(grad[i], m + i, v + i, c);
		return step(w, m[i], v[i], c);
	}
	__device__ float ratio(const double *, float, double w, double u) { return w / u; }
	__device__ float apply(float w, const float *, float *m, float *v, long long i, const float *c) {
		return w - c[7] * step(w, m[i], v[i], c);
	}
};

extern "C" __global__ void __launch_bounds__(threads, 4) measure_lamb(STEP, double *sums) { measure<LAMB>(ARGUMENTS, sums); }
extern "C" __global__ void __launch_bounds__(threads, 4) ratios_lamb(STEP, const double *sums, const int *starts, float *ratio) {
	ratios<LAMB>(ARGUMENTS, sums, starts, ratio);
}
extern "C" __global__ void __launch_bounds__(threads, 4) update_lamb(STEP, const float *ratios) { apply<LAMB>(ARGUMENTS, ratios); }
