// The parts of the stand-in driver. All of it runs under one lock, that of the call that came in.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

extern "C" {
#include <cuda.h>
}

// What libcublas and libnvrtc call, and what the Go package sim calls.
#define SIM_EXPORT extern "C"

SIM_EXPORT int simEnter(const char *function);         // counts a call; the status that a fault gives it, or 0
SIM_EXPORT int simDead();                              // the status that ended the device, or 0
SIM_EXPORT int simQueue(CUstream stream, std::function<std::string()> *work);  // takes what work holds
SIM_EXPORT int simWait(CUstream stream);
SIM_EXPORT void simLive(const char *kind, int change);  // counts objects that wait for their release
SIM_EXPORT void simHandle(const char *kind, CUcontext *owner, int change);  // the same for what belongs to the current context
SIM_EXPORT int simFault(const char *plan);              // sets the plan; 1 when it does not parse
SIM_EXPORT const char *simLeaks();                      // what was not released, "" when nothing is left
SIM_EXPORT unsigned long long simCalls(const char *function);  // since the start; "" for all

namespace sim {

extern std::recursive_mutex lock;

// A Record is a point in a stream that was reached or not.
struct Record {
	CUstream stream;
	bool done = false;
	double time = 0;
};

using Work = std::function<std::string()>;  // gives "" or what went wrong

extern thread_local CUcontext current;

CUresult fail(CUcontext c, CUresult code, const std::string &why);  // ends a context

// Streams.
CUresult queue(CUcontext c, CUstream s, Work work);
CUresult drain(CUcontext c, CUstream s);   // runs what is queued
CUresult drainAll(CUcontext c);
CUstream resolve(CUcontext c, CUstream s);  // nullptr when there is no such stream

// Memory.
bool inRange(CUcontext c, const void *p, size_t bytes);  // of device memory, or of host memory that is pinned
bool pinned(const void *p, size_t bytes);
void releaseAll(CUcontext c, bool lost);  // what c still holds
void dropModules(CUcontext c, bool lost);
void open(bool on);            // device memory can be touched in between
size_t used(int device);

template <class T> bool known(const std::set<T> &all, T x) { return all.count(x) != 0; }
extern std::set<CUcontext> contexts;
extern std::set<CUevent> events;
extern std::set<CUmodule> modules;

// Settings.
long setting(const char *name, long fallback);
int deviceCount();
size_t deviceBytes();
int capability();  // as 90 for 9.0

}  // namespace sim

struct CUstream_st {
	CUcontext context;
	bool blocking;
	int priority;
	unsigned flags;
	std::deque<sim::Work> work;
};

struct CUctx_st {
	int device;
	unsigned flags;
	CUresult dead = CUDA_SUCCESS;     // the error that ended it
	CUresult pending = CUDA_SUCCESS;  // one that the next wait finds
	CUstream_st null{};
	std::set<CUstream> streams;
	std::map<std::string, int> handles;  // of other libraries
};

struct CUevent_st {
	CUcontext context;
	unsigned flags;
	std::shared_ptr<sim::Record> last;
};

// A call that needs a current context that is well.
#define CALL(name)                                    \
	std::lock_guard<std::recursive_mutex> held(sim::lock); \
	if (int bad = simEnter(#name)) return (CUresult)bad;   \
	CUcontext ctx = sim::current;                     \
	if (!ctx) return CUDA_ERROR_INVALID_CONTEXT;      \
	if (ctx->dead) return ctx->dead
// One that needs no context.
#define PLAIN(name)                                   \
	std::lock_guard<std::recursive_mutex> held(sim::lock); \
	if (int bad = simEnter(#name)) return (CUresult)bad
// A release goes through whatever happened, and then says what did.
#define RELEASE(name)                                 \
	std::lock_guard<std::recursive_mutex> held(sim::lock); \
	CUresult late = (CUresult)simEnter(#name);        \
	CUcontext ctx = sim::current;                     \
	if (!ctx) return late ? late : CUDA_ERROR_INVALID_CONTEXT; \
	if (!late) late = ctx->dead
