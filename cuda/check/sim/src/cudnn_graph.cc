// cuDNN's graph API on the CPU, by its backend descriptors: convolutions with operations on their results, and attention
// with its gradient, in float32 with the roundings of the tensors in between. It takes the graphs for which cuDNN's heuristics have engines, and
// refuses others as they do. The first engine cannot make its plan; the notes of others make them unfit for some
// options. Reductions add to the old content, and their sums differ in bits from run to run.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <map>
#include <set>
#include <sstream>
#include <vector>

#include "dnn.h"

using namespace sim::dnn;

namespace {

struct Descriptor;
using Ref = std::shared_ptr<Descriptor>;

struct Value {
	cudnnBackendAttributeType_t type;
	int64_t count;
	std::string bytes;
	std::vector<Ref> to;
};

// A Tensor of a program, and an Op on tensors by their places in it.
struct Tensor {
	long id, type, between, scalar, dims[4], strides[4];
	size_t count() const { return (size_t)dims[0] * dims[1] * dims[2] * dims[3]; }
	// offset is the place in memory of element i, of which the last dimension runs first.
	size_t offset(size_t i) const {
		size_t at = 0;
		for (int d = 3; d >= 0; i /= dims[d--]) at += i % dims[d] * strides[d];
		return at;
	}
	bool channelsLast() const {
		return strides[1] == 1 && strides[3] == dims[1] && strides[2] == dims[1] * dims[3] && strides[0] == dims[1] * dims[2] * dims[3];
	}
};
enum What { Convolve, Multiply, Add, Relu, ReluGrad, Sum, Subtract, Divide, Exp, Log, Copy, Max, MatMul, Transpose };
struct Op {
	long what, kind, pad[2], stride[2], dilation[2], a, b, c;
	long nan;  // a ReLU leaves one as it is
};
struct Program {
	std::vector<Tensor> tensors;
	std::vector<Op> ops;
};

// An Engine as the heuristics name it.
struct Engine {
	long number, notes, workspace;
	double time;
};

struct Descriptor {
	int kind;
	bool final = false;
	std::map<int, Value> values;
	Program program;              // of a graph, and of descriptors made from one
	std::vector<Engine> engines;  // of heuristics
	Engine engine{};              // of a configuration, an engine and a plan

	template <class T> std::vector<T> all(int name) const {
		auto v = values.find(name);
		if (v == values.end()) return {};
		std::vector<T> r(v->second.bytes.size() / sizeof(T));
		memcpy(r.data(), v->second.bytes.data(), r.size() * sizeof(T));
		return r;
	}
	template <class T> T one(int name, T fallback) const {
		std::vector<T> v = all<T>(name);
		return v.size() == 1 ? v[0] : fallback;
	}
	Ref to(int name) const {
		auto v = values.find(name);
		return v == values.end() || v->second.to.size() != 1 ? nullptr : v->second.to[0];
	}
};

std::map<void *, Ref> *known() {
	static std::map<void *, Ref> m;
	return &m;
}
Ref find(void *d) {
	auto at = known()->find(d);
	return at == known()->end() ? nullptr : at->second;
}
#define LOCK std::lock_guard<std::recursive_mutex> held(*lock())

size_t sizeOf(cudnnBackendAttributeType_t t) {
	switch (t) {
	case CUDNN_TYPE_BOOLEAN: case CUDNN_TYPE_CHAR: return 1;
	case CUDNN_TYPE_HANDLE: case CUDNN_TYPE_INT64: case CUDNN_TYPE_VOID_PTR: case CUDNN_TYPE_BACKEND_DESCRIPTOR: return 8;
	default: return 4;
	}
}

// belongs reports whether descriptors of a kind have an attribute.
bool belongs(int kind, int name) {
	static const struct { int kind, first, last; } all[] = {
		{CUDNN_BACKEND_POINTWISE_DESCRIPTOR, 0, 2}, {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, 100, 106}, {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, 200, 204},
		{CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, 300, 303}, {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, 400, 407}, {CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, 600, 601},
		{CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, 700, 705}, {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, 706, 711},
		{CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, 712, 717}, {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, 750, 757},
		{CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, 800, 801}, {CUDNN_BACKEND_TENSOR_DESCRIPTOR, 900, 908}, {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, 1000, 1003},
		{CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1300, 1305}, {CUDNN_BACKEND_REDUCTION_DESCRIPTOR, 1600, 1601}, {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, 1610, 1612},
		{CUDNN_BACKEND_MATMUL_DESCRIPTOR, 1500, 1500}, {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, 1520, 1523},
		{CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, 2200, 2201}, {CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, 2701, 2702},
	};
	for (auto &k : all)
		if (k.kind == kind && name >= k.first && name <= k.last) return true;
	return false;
}

bool narrow(long type) { return type == CUDNN_DATA_HALF || type == CUDNN_DATA_BFLOAT16; }

// place adds a tensor to a program, once; -1 for none.
long place(Program &p, const Ref &t) {
	if (!t) return -1;
	Tensor x{t->one<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID, 0), t->one<int32_t>(CUDNN_ATTR_TENSOR_DATA_TYPE, 0), t->one<char>(CUDNN_ATTR_TENSOR_IS_VIRTUAL, 0),
		t->one<char>(CUDNN_ATTR_TENSOR_IS_BY_VALUE, 0), {}, {}};
	std::vector<int64_t> dims = t->all<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS), strides = t->all<int64_t>(CUDNN_ATTR_TENSOR_STRIDES);
	std::copy(dims.begin(), dims.end(), x.dims);
	std::copy(strides.begin(), strides.end(), x.strides);
	for (size_t i = 0; i < p.tensors.size(); i++)
		if (p.tensors[i].id == x.id) return i;
	p.tensors.push_back(x);
	return p.tensors.size() - 1;
}

// operation adds one to a program, or returns false if it is incomplete.
bool operation(Program &p, const Ref &d) {
	Op o{};
	int x = 0, w = 0, y = 0;
	switch (d->kind) {
	case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
		o.what = MatMul;
		if (!d->to(CUDNN_ATTR_OPERATION_MATMUL_DESC)) return false;
		o.a = place(p, d->to(CUDNN_ATTR_OPERATION_MATMUL_ADESC));
		o.b = place(p, d->to(CUDNN_ATTR_OPERATION_MATMUL_BDESC));
		o.c = place(p, d->to(CUDNN_ATTR_OPERATION_MATMUL_CDESC));
		if (o.b < 0) return false;
		break;
	case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
		o.what = Transpose;
		o.a = place(p, d->to(CUDNN_ATTR_OPERATION_RESHAPE_XDESC));
		o.b = -1;
		o.c = place(p, d->to(CUDNN_ATTR_OPERATION_RESHAPE_YDESC));
		break;
	case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
		o.what = d->to(CUDNN_ATTR_OPERATION_REDUCTION_DESC) &&
			d->to(CUDNN_ATTR_OPERATION_REDUCTION_DESC)->one<int32_t>(CUDNN_ATTR_REDUCTION_OPERATOR, -1) == CUDNN_REDUCE_TENSOR_MAX ? Max : Sum;
		o.a = place(p, d->to(CUDNN_ATTR_OPERATION_REDUCTION_XDESC));
		o.b = -1;
		o.c = place(p, d->to(CUDNN_ATTR_OPERATION_REDUCTION_YDESC));
		break;
	case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR: {
		Ref of = d->to(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
		if (!of) return false;
		std::map<int, What> modes{{CUDNN_POINTWISE_ADD, Add}, {CUDNN_POINTWISE_MUL, Multiply}, {CUDNN_POINTWISE_RELU_FWD, Relu}, {CUDNN_POINTWISE_RELU_BWD, ReluGrad},
			{CUDNN_POINTWISE_SUB, Subtract}, {CUDNN_POINTWISE_DIV, Divide}, {CUDNN_POINTWISE_EXP, Exp}, {CUDNN_POINTWISE_LOG, Log}, {CUDNN_POINTWISE_IDENTITY, Copy}};
		o.what = modes.at(of->one<int32_t>(CUDNN_ATTR_POINTWISE_MODE, -1));
		o.nan = of->one<int32_t>(CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, 0) == CUDNN_PROPAGATE_NAN;
		bool back = o.what == ReluGrad;
		o.a = place(p, d->to(CUDNN_ATTR_OPERATION_POINTWISE_XDESC));
		o.b = place(p, d->to(back ? CUDNN_ATTR_OPERATION_POINTWISE_DYDESC : CUDNN_ATTR_OPERATION_POINTWISE_BDESC));
		o.c = place(p, d->to(back ? CUDNN_ATTR_OPERATION_POINTWISE_DXDESC : CUDNN_ATTR_OPERATION_POINTWISE_YDESC));
		if (o.b < 0 && o.what != Relu && o.what != Exp && o.what != Log && o.what != Copy) return false;
		break;
	}
	case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR: o.kind = ForwardConvolution; x = 704; w = 703; y = 705; break;
	case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR: o.kind = InputGradient; x = 710; w = 709; y = 711; break;
	case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR: o.kind = WeightGradient; x = 716; w = 715; y = 717; break;
	default: return false;
	}
	if (x) {
		Ref c = d->to(w - 1);
		if (!c || d->one<float>(w - 3, 0) != 1 || d->one<float>(w - 2, 1) != 0) return false;
		o.what = Convolve;
		for (int i = 0; i < 2; i++) {
			o.pad[i] = c->all<int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS)[i];
			o.stride[i] = c->all<int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES)[i];
			o.dilation[i] = c->all<int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS)[i];
		}
		o.a = place(p, d->to(x));
		o.b = place(p, d->to(w));
		o.c = place(p, d->to(y));
		if (o.b < 0) return false;
	}
	if (o.a < 0 || o.c < 0) return false;
	p.ops.push_back(o);
	return true;
}

Shape shape(const Program &p, const Op &o) {
	const long *x = p.tensors[o.a].dims, *w = p.tensors[o.b].dims;
	Shape s{(int)x[0], (int)x[1], (int)x[2], (int)x[3], (int)w[0], (int)w[2], (int)w[3], {}, {}, {}, (int)(x[1] / w[1])};
	for (int i = 0; i < 2; i++) {
		s.pad[i] = o.pad[i];
		s.stride[i] = o.stride[i];
		s.dilation[i] = o.dilation[i];
	}
	return s;
}

bool attends(const Program &p) {
	for (const Op &o : p.ops)
		if (o.what == MatMul) return true;
	return false;
}

// fitsAttention is fits for a program with products of matrices.
bool fitsAttention(const Program &p) {
	for (const Op &o : p.ops) {
		const long *a = p.tensors[o.a].dims, *b = o.b < 0 ? a : p.tensors[o.b].dims, *c = p.tensors[o.c].dims;
		if (a[0] != c[0] || a[1] != c[1] || o.what == Convolve || o.what == Relu || o.what == ReluGrad) return false;
		bool fits = a[2] == c[2] && a[3] == c[3];
		if (o.what == MatMul) fits = b[0] == c[0] && b[1] == c[1] && a[2] == c[2] && a[3] == b[2] && b[3] == c[3];
		else if (o.what == Transpose) fits = a[2] == c[3] && a[3] == c[2];
		else if (o.what == Sum || o.what == Max) fits = a[2] == c[2] && c[3] == 1;
		else
			for (int d = 0; d < 4; d++) fits = fits && (b[d] == c[d] || b[d] == 1);
		if (!fits) return false;
	}
	return true;
}

// fits reports whether the shapes of a program's operations fit.
bool fits(const Program &p) {
	if (attends(p)) return fitsAttention(p);
	for (const Op &o : p.ops) {
		if (o.what > Sum || !p.tensors[o.a].channelsLast() || !p.tensors[o.c].channelsLast()) return false;
		const Tensor &a = p.tensors[o.a], &c = p.tensors[o.c];
		if (o.what == Convolve) {
			const Tensor &b = p.tensors[o.b];
			if (a.dims[1] % b.dims[1] || c.dims[0] != a.dims[0] || c.dims[1] != b.dims[0]) return false;
			for (int i = 0; i < 2; i++)
				if (c.dims[2 + i] != (a.dims[2 + i] + 2 * o.pad[i] - o.dilation[i] * (b.dims[2 + i] - 1) - 1) / o.stride[i] + 1) return false;
		} else if (o.what == Sum) {
			if ((long)c.count() != a.dims[1] || c.dims[1] != a.dims[1]) return false;
		} else {
			if (a.count() != c.count()) return false;
			if (o.b >= 0 && p.tensors[o.b].count() != a.count() && ((long)p.tensors[o.b].count() != a.dims[1] || o.what == ReluGrad)) return false;
		}
	}
	return true;
}

const Op *convolution(const Program &p) {
	const Op *found = nullptr;
	for (const Op &o : p.ops)
		if (o.what == Convolve) {
			if (found) return nullptr;
			found = &o;
		}
	return found;
}

enum Note { TensorCore = 1 << 0, NonDeterministic = 1 << 4, Winograd = 1 << 5 };

// engines returns the engines of a mode of the heuristics, the best first.
std::vector<Engine> engines(const Program &p, int mode) {
	if (attends(p)) {  // heads of 16 bits, whose width is a multiple of 8
		const Op &first = p.ops[0];
		if (!narrow(p.tensors[first.a].type) || p.tensors[first.a].dims[3] % 8 || p.tensors[first.a].dims[3] > 128) return {};
		if (mode == CUDNN_HEUR_MODE_FALLBACK) return {};
		return {{7, TensorCore, 0, 1e-6}, {12, TensorCore, 256, 5e-6}, {11, TensorCore, 0, 9e-6}};
	}
	const Op *o = convolution(p);
	if (!o) return {};
	Shape s = shape(p, *o);
	long type = p.tensors[o->kind == InputGradient ? o->c : o->a].type;
	bool apart = s.dilation[0] > 1 || s.dilation[1] > 1, single = s.kh * s.kw == 1;
	long work = 131 + 16 * s.kh * s.kw + 4 * s.o;
	if (p.ops.size() == 1) {
		if (p.tensors[o->a].type != p.tensors[o->b].type || p.tensors[o->a].type != p.tensors[o->c].type) return {};
		if (narrow(type) && apart && o->kind == WeightGradient) return {};
		if (mode == CUDNN_HEUR_MODE_FALLBACK) return {{0, 0, 0, 50e-6}};
		std::vector<Engine> all{{7, narrow(type) ? TensorCore : 0, 0, 1e-6}};  // cannot make its plan
		if (narrow(type)) all.push_back({5, TensorCore | Winograd, work, 5e-6});
		all.push_back({3, TensorCore, work, single ? 20e-6 : 15e-6});
		if (o->kind != ForwardConvolution) all.push_back({4, NonDeterministic, 0, 8e-6});
		all.push_back({1, 0, 0, single ? 10e-6 : 30e-6});
		return all;
	}
	// With other operations: in 16 bits, channels by eights, no gradients of strides, sums in float32.
	if (!narrow(p.tensors[o->b].type) || s.c % 8 || s.o % 8 || s.groups > 1 || apart) return {};
	if (o->kind == WeightGradient || &p.ops[0] != o) return {};
	for (const Op &x : p.ops)
		if (x.what == Sum && p.tensors[x.c].type != CUDNN_DATA_FLOAT) return {};
	if (mode == CUDNN_HEUR_MODE_FALLBACK) return {{9, TensorCore, 0, 25e-6}};
	return {{8, TensorCore, 0, 5e-6}, {9, TensorCore, 0, 12e-6}};
}

// compile reports whether an engine's plan can be made.
cudnnStatus_t compile(const Engine &e, const Program &p) {
	if (e.number == 7) return notSupported;
	if (e.number == 8 && p.ops.size() > 4) return notCompiled;  // more than the engine holds
	if (attends(p)) return CUDNN_STATUS_SUCCESS;
	const Op *o = convolution(p);
	bool strided = o->stride[0] > 1 || o->stride[1] > 1, sums = false;
	for (const Op &x : p.ops) sums |= x.what == Sum;
	return o->kind == InputGradient && strided && sums ? notCompiled : CUDNN_STATUS_SUCCESS;
}

std::string text(const Engine &e, const Program &p) {
	std::ostringstream s;
	s << "{\"stand-in\":[" << e.number << ',' << e.notes << ',' << e.workspace << ',' << (long)(e.time * 1e9 + .5) << ',' << p.tensors.size() << ',' << p.ops.size();
	for (const Tensor &t : p.tensors) {
		s << ',' << t.id << ',' << t.type << ',' << t.between << ',' << t.scalar;
		for (long d : t.dims) s << ',' << d;
		for (long d : t.strides) s << ',' << d;
	}
	for (const Op &o : p.ops) {
		s << ',' << o.what << ',' << o.kind;
		for (int i = 0; i < 2; i++) s << ',' << o.pad[i] << ',' << o.stride[i] << ',' << o.dilation[i];
		s << ',' << o.a << ',' << o.b << ',' << o.c << ',' << o.nan;
	}
	s << "],\"kernelName\":\"sim_" << e.number << "\"}";
	return s.str();
}
bool parse(const std::string &text, Engine &e, Program &p) {
	size_t at = text.find('[');
	if (at == std::string::npos) return false;
	std::istringstream s(text.substr(at + 1));
	bool good = true;
	auto next = [&] {
		long n = 0;
		good = good && (bool)(s >> n);
		s.get();
		return n;
	};
	e.number = next();
	e.notes = next();
	e.workspace = next();
	e.time = next() * 1e-9;
	long tensors = next(), ops = next();
	if (!good || tensors < 1 || tensors > 99 || ops < 1 || ops > 99) return false;
	for (long i = 0; i < tensors; i++) {
		Tensor t{};
		t.id = next();
		t.type = next();
		t.between = next();
		t.scalar = next();
		for (long &d : t.dims) d = next();
		for (long &d : t.strides) d = next();
		p.tensors.push_back(t);
	}
	for (long i = 0; i < ops; i++) {
		Op o{};
		o.what = next();
		o.kind = next();
		for (int k = 0; k < 2; k++) {
			o.pad[k] = next();
			o.stride[k] = next();
			o.dilation[k] = next();
		}
		o.a = next();
		o.b = next();
		o.c = next();
		o.nan = next();
		p.ops.push_back(o);
	}
	return good && fits(p);
}

cudnnStatus_t finalize(const Ref &d) {
	auto has = [&](std::initializer_list<int> names) {
		for (int n : names)
			if (!d->values.count(n)) return false;
		return true;
	};
	switch (d->kind) {
	case CUDNN_BACKEND_TENSOR_DESCRIPTOR: {
		if (!has({900, 901, 902, 903, 906})) return badParam;
		std::vector<int64_t> n = d->all<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS), at = d->all<int64_t>(CUDNN_ATTR_TENSOR_STRIDES);
		if (n.size() != 4 || at.size() != 4 || n[0] < 1 || n[1] < 1 || n[2] < 1 || n[3] < 1) return badParam;
		for (int64_t step : at)
			if (step < 1) return badParam;
		long type = d->one<int32_t>(CUDNN_ATTR_TENSOR_DATA_TYPE, -1), align = d->one<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 0);
		return (type == CUDNN_DATA_FLOAT || narrow(type)) && align == 16 ? CUDNN_STATUS_SUCCESS : badParam;
	}
	case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
		if (!has({100, 101, 102, 103, 104, 105, 106}) || d->one<int64_t>(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 0) != 2) return badParam;
		for (int name : {102, 103, 104, 105})
			for (int64_t v : d->all<int64_t>(name))
				if (d->all<int64_t>(name).size() != 2 || v < (name < 104 ? 1 : 0)) return badParam;
		if (d->all<int64_t>(104) != d->all<int64_t>(105)) return notSupported;
		return d->one<int32_t>(101, -1) == CUDNN_CROSS_CORRELATION && d->one<int32_t>(100, -1) == CUDNN_DATA_FLOAT ? CUDNN_STATUS_SUCCESS : notSupported;
	case CUDNN_BACKEND_MATMUL_DESCRIPTOR: return has({CUDNN_ATTR_MATMUL_COMP_TYPE}) ? CUDNN_STATUS_SUCCESS : badParam;
	case CUDNN_BACKEND_POINTWISE_DESCRIPTOR: return has({0, 1}) ? CUDNN_STATUS_SUCCESS : badParam;
	case CUDNN_BACKEND_REDUCTION_DESCRIPTOR: return has({1600, 1601}) ? CUDNN_STATUS_SUCCESS : badParam;
	case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
		if (!has({801})) return badParam;  // without a handle it is for a described card
		for (const Ref &o : d->values[801].to)
			if (!operation(d->program, o)) return badParam;
		return fits(d->program) ? CUDNN_STATUS_SUCCESS : badParam;
	case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR: {
		Ref g = d->to(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
		int mode = d->one<int32_t>(CUDNN_ATTR_ENGINEHEUR_MODE, -1);
		if (!g || (mode != CUDNN_HEUR_MODE_A && mode != CUDNN_HEUR_MODE_FALLBACK)) return badParam;
		d->program = g->program;
		d->engines = engines(g->program, mode);
		return d->engines.empty() ? notSupported : CUDNN_STATUS_SUCCESS;
	}
	case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR: {
		if (!has({CUDNN_ATTR_EXECUTION_PLAN_HANDLE}) && !has({CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP})) return badParam;
		if (has({CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION})) {
			std::string json = d->values[CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION].bytes;
			return parse(json, d->engine, d->program) ? CUDNN_STATUS_SUCCESS : badParam;
		}
		Ref c = d->to(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
		if (!c) return badParam;
		d->engine = c->engine;
		d->program = c->program;
		return compile(d->engine, d->program);
	}
	case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
		return has({1000, 1001, 1003}) && d->values[1000].count == d->values[1001].count ? CUDNN_STATUS_SUCCESS : badParam;
	case CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR: return has({CUDNN_ATTR_DEVICEPROP_HANDLE}) || has({CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION}) ? CUDNN_STATUS_SUCCESS : badParam;
	case CUDNN_BACKEND_ENGINE_DESCRIPTOR: case CUDNN_BACKEND_ENGINECFG_DESCRIPTOR: case CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR:
		return notSupported;  // they come from the heuristics
	}
	return CUDNN_STATUS_SUCCESS;  // an operation: the graph looks at it
}

float element(long type, const void *p, size_t i) {
	if (type == CUDNN_DATA_FLOAT) return ((const float *)p)[i];
	uint16_t u = ((const uint16_t *)p)[i];
	return type == CUDNN_DATA_HALF ? sim::fromHalf(u) : sim::fromBFloat16(u);
}
float rounded(long type, float f) {
	if (type == CUDNN_DATA_FLOAT) return f;
	return type == CUDNN_DATA_HALF ? sim::fromHalf(sim::toHalf(f)) : sim::fromBFloat16(sim::toBFloat16(f));
}

// met is the elements of x that a tap of a convolution meets.
size_t met(const Shape &s) {
	size_t n = (size_t)s.n * s.c;
	for (int d = 0; d < 2; d++) {
		int in = d ? s.w : s.h, taps = d ? s.kw : s.kh, out = (in + 2 * s.pad[d] - s.dilation[d] * (taps - 1) - 1) / s.stride[d] + 1;
		std::set<int> at;
		for (int o = 0; o < out; o++)
			for (int k = 0; k < taps; k++)
				if (int i = o * s.stride[d] - s.pad[d] + k * s.dilation[d]; i >= 0 && i < in) at.insert(i);
		n *= at.size();
	}
	return n;
}

// moves counts the bytes of a program's tensors in memory.
void moves(const Program &p, const std::vector<bool> &made) {
	size_t read = 0, written = 0;
	for (size_t t = 0; t < made.size(); t++) {
		if (p.tensors[t].between || p.tensors[t].scalar) continue;
		size_t n = p.tensors[t].count(), element = p.tensors[t].type == CUDNN_DATA_FLOAT ? 4 : 2;
		for (const Op &o : p.ops)
			if (o.what == Convolve && o.kind != InputGradient && o.a == (int)t) n = met(shape(p, o));
		(made[t] ? written : read) += n * element;
	}
	simMove(read, written);
}

// attend runs a program with products of matrices. The numbers of each tensor lie in the order of its dimensions.
void attend(const Program &p, const std::vector<void *> &at, float jitter) {
	std::vector<std::vector<float>> x(p.tensors.size());
	std::vector<bool> made(p.tensors.size());
	for (const Op &o : p.ops) made[o.c] = true;
	moves(p, made);
	for (size_t t = 0; t < x.size(); t++) {
		const Tensor &k = p.tensors[t];
		x[t].resize(k.count());
		for (size_t i = 0; !made[t] && i < x[t].size(); i++) x[t][i] = element(k.type, at[t], k.offset(i));
	}
	for (const Op &o : p.ops) {
		const Tensor &a = p.tensors[o.a], &b = p.tensors[o.b < 0 ? o.a : o.b], &c = p.tensors[o.c];
		std::vector<float> &from = x[o.a], &to = x[o.c];
		size_t rows = a.dims[2], inner = a.dims[3], columns = c.dims[3], matrices = a.dims[0] * a.dims[1];
		for (size_t i = 0; i < to.size(); i++) {
			size_t place = 0, rest = i, step = 1;  // of the second operand, which may be repeated
			for (int d = 3; d >= 0; rest /= c.dims[d--]) {
				if (b.dims[d] > 1) place += rest % c.dims[d] * step;
				step *= b.dims[d];
			}
			float v = o.b < 0 || o.what == MatMul ? 0 : x[o.b][place];
			switch (o.what) {
			case Multiply: to[i] = from[i] * v; break;
			case Add: to[i] = from[i] + v; break;
			case Subtract: to[i] = from[i] - v; break;
			case Divide: to[i] = from[i] / v; break;
			case Exp: to[i] = expf(from[i]); break;
			case Log: to[i] = logf(from[i]); break;
			case Copy: to[i] = from[i] * jitter; break;
			case Sum: case Max: {
				float all = from[i * inner];
				for (size_t k = 1; k < inner; k++) all = o.what == Sum ? all + from[i * inner + k] : fmaxf(all, from[i * inner + k]);
				to[i] = all;
				break;
			}
			case Transpose: to[i] = from[i / (rows * inner) * rows * inner + i % rows * inner + i / rows % inner]; break;
			case MatMul: {
				size_t m = i / columns, matrix = m / rows, n = i % columns;
				float sum = 0;
				for (size_t k = 0; k < inner && matrix < matrices; k++) sum += from[m * inner + k] * x[o.b][(matrix * inner + k) * columns + n];
				to[i] = sum;
				break;
			}
			}
		}
		for (float &f : to) f = rounded(c.type, f);
	}
	for (size_t t = 0; t < x.size(); t++) {
		const Tensor &k = p.tensors[t];
		if (!made[t] || k.between) continue;
		for (size_t i = 0; i < x[t].size(); i++) {
			if (k.type == CUDNN_DATA_FLOAT) ((float *)at[t])[k.offset(i)] = x[t][i];
			else ((uint16_t *)at[t])[k.offset(i)] = k.type == CUDNN_DATA_HALF ? sim::toHalf(x[t][i]) : sim::toBFloat16(x[t][i]);
		}
	}
}

// execute runs a program on pointers by tensor, null for those in between.
void execute(const Program &p, const Engine &e, const std::vector<void *> &at, float jitter) {
	std::vector<std::vector<float>> x(p.tensors.size());
	std::vector<bool> made(p.tensors.size()), summed(p.tensors.size());
	for (const Op &o : p.ops) {
		made[o.kind == InputGradient && o.what == Convolve ? o.a : o.kind == WeightGradient && o.what == Convolve ? o.b : o.c] = true;
		if (o.what == Sum) summed[o.c] = true;
	}
	moves(p, made);
	bool tf32 = e.notes & TensorCore;
	for (size_t t = 0; t < x.size(); t++) {
		x[t].resize(p.tensors[t].count());
		if (made[t] && !summed[t]) continue;
		for (size_t i = 0; i < x[t].size(); i++) x[t][i] = element(p.tensors[t].type, at[t], i);
	}
	for (const Op &o : p.ops) {
		std::vector<float> &a = x[o.a], &c = x[o.c];
		size_t channels = p.tensors[o.a].dims[1], to = o.c;
		auto b = [&](size_t i) { return x[o.b].size() == a.size() ? x[o.b][i] : x[o.b][i % channels]; };
		switch (o.what) {
		case Convolve: {
			to = o.kind == InputGradient ? o.a : o.kind == WeightGradient ? o.b : o.c;
			std::vector<std::vector<float>> in{a, x[o.b], c};
			if (tf32 && p.tensors[to].type == CUDNN_DATA_FLOAT)
				for (auto &v : in)
					for (float &f : v) f = sim::tf32(f);
			convolve((Kind)o.kind, shape(p, o), in[0].data(), in[1].data(), in[2].data(), jitter);
			x[to] = in[o.kind == InputGradient ? 0 : o.kind == WeightGradient ? 1 : 2];
			break;
		}
		case Multiply: for (size_t i = 0; i < a.size(); i++) c[i] = a[i] * b(i); break;
		case Add: for (size_t i = 0; i < a.size(); i++) c[i] = a[i] + b(i); break;
		case Relu: for (size_t i = 0; i < a.size(); i++) c[i] = a[i] > 0 || (o.nan && a[i] != a[i]) ? a[i] : 0; break;
		case ReluGrad: for (size_t i = 0; i < a.size(); i++) c[i] = a[i] > 0 ? b(i) : 0; break;
		case Sum: for (size_t i = 0; i < a.size(); i++) c[i % channels] += a[i] * jitter; break;
		}
		for (float &f : x[to]) f = rounded(p.tensors[to].type, f);
	}
	for (size_t t = 0; t < x.size(); t++) {
		if (!made[t] || p.tensors[t].between) continue;
		for (size_t i = 0; i < x[t].size(); i++) {
			if (p.tensors[t].type == CUDNN_DATA_FLOAT) ((float *)at[t])[i] = x[t][i];
			else ((uint16_t *)at[t])[i] = p.tensors[t].type == CUDNN_DATA_HALF ? sim::toHalf(x[t][i]) : sim::toBFloat16(x[t][i]);
		}
	}
}

}  // namespace

extern "C" {

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t kind, cudnnBackendDescriptor_t *out) {
	LOCK;
	if (cudnnStatus_t r = enter("cudnnBackendCreateDescriptor")) return r;
	Ref d = std::make_shared<Descriptor>();
	d->kind = kind;
	*out = d.get();
	(*known())[d.get()] = d;
	simLive("cuDNN descriptors", 1);
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t d) {
	LOCK;
	cudnnStatus_t r = enter("cudnnBackendDestroyDescriptor");
	if (!known()->erase(d)) return badParam;
	simLive("cuDNN descriptors", -1);
	return r;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t p) {
	long wait = 0;  // compiling takes time, in which other threads compile
	{
		LOCK;
		Ref d = find(p), c = d ? d->to(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG) : nullptr;
		if (c && d->kind == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR && c->engine.number >= 8) wait = sim::setting("RNA_SIM_COMPILE", 0);
	}
	if (wait) usleep(1000 * wait);
	LOCK;
	if (cudnnStatus_t r = enter("cudnnBackendFinalize")) return r;
	Ref d = find(p);
	if (!d || d->final) return badParam;
	cudnnStatus_t r = finalize(d);
	d->final = r == CUDNN_STATUS_SUCCESS;
	return r;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t p, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count, const void *values) {
	LOCK;
	if (cudnnStatus_t r = enter("cudnnBackendSetAttribute")) return r;
	Ref d = find(p);
	if (!d || d->final || count < 1 || !values || !belongs(d->kind, name)) return badParam;
	Value v{type, count, std::string((const char *)values, count * sizeOf(type)), {}};
	if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
		for (int64_t i = 0; i < count; i++) {
			Ref to = find(((void *const *)values)[i]);
			if (!to || !to->final) return badParam;
			v.to.push_back(to);
		}
	d->values[name] = v;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const p, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t room, int64_t *count, void *values) {
	LOCK;
	if (cudnnStatus_t r = enter("cudnnBackendGetAttribute")) return r;
	Ref d = find(p);
	if (!d || !d->final || !count || !belongs(d->kind, name)) return badParam;
	auto give = [&](cudnnBackendAttributeType_t is, const void *from, int64_t n) {
		if (type != is) return badParam;
		*count = n;
		if (values && from) memcpy(values, from, std::min(n, room) * sizeOf(type));
		return (cudnnStatus_t)CUDNN_STATUS_SUCCESS;
	};
	auto number = [&](int64_t n) { return give(CUDNN_TYPE_INT64, &n, 1); };
	switch ((int)name) {
	case CUDNN_ATTR_ENGINEHEUR_RESULTS:
		if (type != CUDNN_TYPE_BACKEND_DESCRIPTOR) return badParam;
		*count = d->engines.size();
		for (int64_t i = 0; values && i < std::min(room, *count); i++) {
			Ref c = find(((void **)values)[i]);
			if (!c || c->kind != CUDNN_BACKEND_ENGINECFG_DESCRIPTOR) return badParam;
			c->final = true;
			c->engine = d->engines[i];
			c->program = d->program;
		}
		return CUDNN_STATUS_SUCCESS;
	case CUDNN_ATTR_ENGINECFG_ENGINE: {
		if (type != CUDNN_TYPE_BACKEND_DESCRIPTOR || room < 1) return badParam;
		Ref e = find(*(void **)values);
		if (!e || e->kind != CUDNN_BACKEND_ENGINE_DESCRIPTOR) return badParam;
		*count = 1;
		e->final = true;
		e->engine = d->engine;
		return CUDNN_STATUS_SUCCESS;
	}
	case CUDNN_ATTR_ENGINECFG_KNOB_CHOICES: *count = 0; return CUDNN_STATUS_SUCCESS;
	case CUDNN_ATTR_ENGINE_GLOBAL_INDEX: return number(d->engine.number);
	case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE: {
		std::vector<int32_t> notes;
		for (int i = 0; i < 32; i++)
			if (d->engine.notes >> i & 1) notes.push_back(i);
		return give(CUDNN_TYPE_NUMERICAL_NOTE, notes.data(), notes.size());
	}
	case CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE: {
		int32_t compiled = CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION;
		return give(CUDNN_TYPE_BEHAVIOR_NOTE, &compiled, d->engine.number >= 8);
	}
	case CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE: return number(d->engine.number == 1 ? 0 : d->engine.workspace);
	case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE: return number(d->engine.workspace);
	case CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION: {
		std::string s = text(d->engine, d->program);
		return give(CUDNN_TYPE_CHAR, s.c_str(), s.size() + 1);
	}
	case CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION: {
		std::string s = "{\"deviceName\": \"CPU stand-in\", \"deviceVer\": " + std::to_string(10 * sim::capability()) + ", \"multiProcessorCount\": 4}";
		return give(CUDNN_TYPE_CHAR, s.c_str(), s.size() + 1);
	}
	default: return notSupported;
	}
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t h, cudnnBackendDescriptor_t planned, cudnnBackendDescriptor_t pack) {
	LOCK;
	if (cudnnStatus_t r = begin("cudnnBackendExecute", h)) return r;
	Ref d = find(planned), v = find(pack);
	if (!d || !v || !d->final || !v->final || d->kind != CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR || v->kind != CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR) return badParam;
	std::vector<int64_t> ids = v->all<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
	std::vector<void *> pointers = v->all<void *>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
	void *space = v->one<void *>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, nullptr);
	auto aligned = [](void *p) { return p && (uintptr_t)p % 16 == 0; };
	std::vector<void *> at;
	for (const Tensor &t : d->program.tensors) {
		void *p = nullptr;
		for (size_t i = 0; i < ids.size(); i++)
			if (ids[i] == t.id) p = pointers[i];
		if (t.between ? p != nullptr : t.scalar ? !p : !aligned(p)) return badParam;
		at.push_back(p);
	}
	if (d->engine.workspace && !aligned(space)) return badParam;
	const Op *main = convolution(d->program);
	if (cudnnStatus_t r = load(h, 10 + (main ? main->kind : 3), d->engine.number)) return r;
	static unsigned calls;
	bool sums = false;
	for (const Op &o : d->program.ops) sums |= o.what == Sum || o.what == Copy;
	float jitter = (d->engine.notes & NonDeterministic) || sums ? 1 + (float)(calls++ % 2) * 0x1p-22f : 1;
	if (d->engine.notes & Winograd) jitter += 0x1p-5f;
	std::function<std::string()> work = [d, at, space, jitter] {
		if (d->engine.workspace) memset(space, 0xff, d->engine.workspace);
		simSpend(d->engine.time);
		if (attends(d->program)) attend(d->program, at, jitter);
		else execute(d->program, d->engine, at, jitter);
		return std::string();
	};
	return simQueue(h->stream, &work) ? executionFailed : CUDNN_STATUS_SUCCESS;
}

void cudnnGetLastErrorString(char *message, size_t room) {
	if (room) *message = 0;
}

}  // extern "C"
