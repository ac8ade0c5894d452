// Streams are lazy: queued work runs when somebody waits for it, so that a forgotten wait shows.
#include <time.h>

#include "engine.h"
#include "sim.h"

namespace sim {

std::set<CUevent> events;

namespace {

double spent;  // by the work so far, as it says

// seconds is the time of an event: the clock's, or the nominal time of the work before it.
double seconds() {
	if (setting("RNA_SIM_CLOCK", 0)) return spent;
	timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

// step runs the first work of a stream. After an error of the context work is dropped.
void step(CUcontext c, CUstream s) {
	Work w = std::move(s->work.front());
	s->work.pop_front();
	std::string bad = w();
	spent += 1e-6;
	if (bad.empty()) return;
	bool address = bad.find("illegal address") != std::string::npos;
	bool misaligned = bad.find("misaligned address") != std::string::npos;
	fail(c, address ? CUDA_ERROR_ILLEGAL_ADDRESS : misaligned ? (CUresult)716 : CUDA_ERROR_LAUNCH_FAILED, bad);
}

std::shared_ptr<Record> mark(CUstream s) {
	auto r = std::make_shared<Record>();
	r->stream = s;
	s->work.push_back([r] {
		r->done = true;
		r->time = seconds();
		return std::string();
	});
	return r;
}

void reach(CUcontext c, const std::shared_ptr<Record> &r) {
	while (!r->done && !r->stream->work.empty()) step(c, r->stream);
}

void after(CUcontext c, CUstream s, std::shared_ptr<Record> r) {
	s->work.push_back([c, r] {
		reach(c, r);
		return std::string();
	});
}

// join keeps the order between the null stream and the blocking ones.
void join(CUcontext c, CUstream s) {
	if (s == &c->null) {
		for (CUstream other : c->streams)
			if (other->blocking && !other->work.empty()) after(c, s, mark(other));
	} else if (s->blocking && !c->null.work.empty()) {
		after(c, s, mark(&c->null));
	}
}

CUresult settle(CUcontext c) {
	if (c->pending) fail(c, c->pending, "an injected fault");
	c->pending = CUDA_SUCCESS;
	return (CUresult)simDead();
}

}  // namespace

CUstream resolve(CUcontext c, CUstream s) {
	if ((uintptr_t)s <= 2) return &c->null;
	return known(c->streams, s) ? s : nullptr;
}

CUresult queue(CUcontext c, CUstream s, Work work) {
	if (CUresult r = implicit(c, s)) return r;
	if (s->capture) return record(s, std::move(work));
	join(c, s);
	s->work.push_back([c, work = std::move(work)] {
		// Nothing runs once the context is lost.
		return simDead() || c->pending ? std::string() : work();
	});
	return CUDA_SUCCESS;
}

CUresult drain(CUcontext c, CUstream s) {
	join(c, s);
	if (s->work.empty()) return settle(c);
	open(true);
	while (!s->work.empty()) step(c, s);
	open(false);
	return settle(c);
}

CUresult drainAll(CUcontext c) {
	bool idle = c->null.work.empty();
	for (CUstream s : c->streams) idle = idle && s->work.empty();
	if (idle) return settle(c);
	open(true);
	drain(c, &c->null);
	for (CUstream s : c->streams) drain(c, s);
	open(false);
	return settle(c);
}

}  // namespace sim

using namespace sim;

int simQueue(CUstream s, std::function<std::string()> *work) {
	std::lock_guard<std::recursive_mutex> held(lock);
	CUcontext c = current;
	CUstream to = c ? resolve(c, s) : nullptr;
	if (!to) return CUDA_ERROR_INVALID_CONTEXT;
	if (int bad = simDead()) return bad;
	// Like a kernel: an address that is not the device's is found when the work runs.
	return queue(c, to, [work = std::move(*work)] {
		Work w = work;
		std::string bad;
		struct Both { Work *w; std::string *bad; } both{&w, &bad};
		std::string fault = guarded([](void *p) { *((Both *)p)->bad = (*((Both *)p)->w)(); }, &both);
		return fault.empty() ? bad : fault;
	});
}

void simSpend(double time) { spent += time; }

int simWait(CUstream s) {
	std::lock_guard<std::recursive_mutex> held(lock);
	CUcontext c = current;
	CUstream to = c ? resolve(c, s) : nullptr;
	if (to && to->capture) return spoil(to, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	return to ? drain(c, to) : CUDA_ERROR_INVALID_CONTEXT;
}

extern "C" {

static CUresult make(CUcontext ctx, CUstream *s, unsigned flags, int priority) {
	if (!s || flags > CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
	*s = new CUstream_st{ctx, flags == CU_STREAM_DEFAULT, priority, flags, {}, {}};
	ctx->streams.insert(*s);
	simLive("streams", 1);
	return CUDA_SUCCESS;
}
CUresult cuStreamCreate(CUstream *s, unsigned flags) { CALL(cuStreamCreate); return make(ctx, s, flags, 0); }
CUresult cuStreamCreateWithPriority(CUstream *s, unsigned flags, int priority) { CALL(cuStreamCreateWithPriority); return make(ctx, s, flags, priority); }

CUresult cuStreamDestroy_v2(CUstream s) {
	RELEASE(cuStreamDestroy_v2);
	if (!known(ctx->streams, s)) return late ? late : CUDA_ERROR_INVALID_HANDLE;
	dropStream(s);
	CUresult r = drain(ctx, s);
	ctx->streams.erase(s);
	delete s;
	simLive("streams", -1);
	return late ? late : r;
}

#define STREAM(s)                       \
	CUstream of = resolve(ctx, s);      \
	if (!of) return CUDA_ERROR_INVALID_HANDLE

CUresult cuStreamSynchronize(CUstream s) {
	CALL(cuStreamSynchronize);
	STREAM(s);
	if (of->capture) return spoil(of, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	if (CUresult r = implicit(ctx, of)) return r;
	return drain(ctx, of);
}

CUresult cuStreamQuery(CUstream s) {
	CALL(cuStreamQuery);
	STREAM(s);
	if (of->capture) return spoil(of, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	if (CUresult r = implicit(ctx, of)) return r;
	if (of->work.empty()) return settle(ctx);
	open(true);
	step(ctx, of);
	open(false);
	return simDead() ? (CUresult)simDead() : CUDA_ERROR_NOT_READY;
}

CUresult cuStreamGetFlags(CUstream s, unsigned *flags) { CALL(cuStreamGetFlags); STREAM(s); *flags = of->flags; return CUDA_SUCCESS; }
CUresult cuStreamGetPriority(CUstream s, int *priority) { CALL(cuStreamGetPriority); STREAM(s); *priority = of->priority; return CUDA_SUCCESS; }
CUresult cuStreamGetCtx(CUstream s, CUcontext *c) { CALL(cuStreamGetCtx); STREAM(s); *c = ctx; return CUDA_SUCCESS; }

CUresult cuStreamWaitEvent(CUstream s, CUevent e, unsigned flags) {
	CALL(cuStreamWaitEvent);
	STREAM(s);
	if (flags) return CUDA_ERROR_INVALID_VALUE;
	if (!known(events, e)) return CUDA_ERROR_INVALID_HANDLE;
	if (of->capture || (e->last && e->last->capture)) return of == &ctx->null ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : waitCaptured(of, e->last);
	if (e->last && !e->last->done) {
		join(ctx, of);
		after(ctx, of, e->last);
	}
	return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void) {
	CALL(cuCtxSynchronize);
	if (CUresult r = enclosing(ctx)) return r;
	return drainAll(ctx);
}

CUresult cuEventCreate(CUevent *e, unsigned flags) {
	CALL(cuEventCreate);
	if (!e || flags > 7) return CUDA_ERROR_INVALID_VALUE;
	*e = new CUevent_st{ctx, flags, nullptr};
	events.insert(*e);
	simLive("events", 1);
	return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent e) {
	RELEASE(cuEventDestroy_v2);
	if (!known(events, e)) return late ? late : CUDA_ERROR_INVALID_HANDLE;
	events.erase(e);
	delete e;
	simLive("events", -1);
	return late;
}

#define EVENT(e)                                      \
	if (!known(events, e)) return CUDA_ERROR_INVALID_HANDLE

CUresult cuEventRecord(CUevent e, CUstream s) {
	CALL(cuEventRecord);
	EVENT(e);
	STREAM(s);
	if (of->capture) {
		if (of->capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
		e->last = std::make_shared<Record>();
		e->last->stream = of;
		e->last->capture = of->capture;
		e->last->nodes = of->capture->tails[of];
		return CUDA_SUCCESS;
	}
	if (CUresult r = implicit(ctx, of)) return r;
	join(ctx, of);
	e->last = mark(of);
	return CUDA_SUCCESS;
}

// captured refuses to look at an event that has no time.
static CUresult captured(CUevent e) {
	e->last->capture->invalid = true;
	return CUDA_ERROR_CAPTURED_EVENT;
}

CUresult cuEventSynchronize(CUevent e) {
	CALL(cuEventSynchronize);
	EVENT(e);
	if (!e->last) return CUDA_SUCCESS;
	if (e->last->capture) return captured(e);
	open(true);
	reach(ctx, e->last);
	open(false);
	return settle(ctx);
}

CUresult cuEventQuery(CUevent e) {
	CALL(cuEventQuery);
	EVENT(e);
	if (e->last && e->last->capture) return captured(e);
	if (!e->last || e->last->done) return settle(ctx);
	open(true);
	if (!e->last->stream->work.empty()) step(ctx, e->last->stream);
	open(false);
	return simDead() ? (CUresult)simDead() : CUDA_ERROR_NOT_READY;
}

static CUresult elapsed(float *ms, CUevent a, CUevent b) {
	if (!known(events, a) || !known(events, b) || !a->last || !b->last || (a->flags | b->flags) & CU_EVENT_DISABLE_TIMING) return CUDA_ERROR_INVALID_HANDLE;
	if (!a->last->done || !b->last->done) return CUDA_ERROR_NOT_READY;
	*ms = (b->last->time - a->last->time) * 1e3;
	return CUDA_SUCCESS;
}
CUresult cuEventElapsedTime(float *ms, CUevent a, CUevent b) { CALL(cuEventElapsedTime); return elapsed(ms, a, b); }
CUresult cuEventElapsedTime_v2(float *ms, CUevent a, CUevent b) { CALL(cuEventElapsedTime_v2); return elapsed(ms, a, b); }

}  // extern "C"
