// The parts of the stand-in driver. Everything runs under one lock, taken by the incoming call.
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
#include <thread>
#include <vector>

extern "C" {
#include <cuda.h>
}

// Functions for libcublas and libnvrtc, and for the Go package sim.
#define SIM_EXPORT extern "C"

SIM_EXPORT int simEnter(const char *function);         // counts a call; the status that a fault gives it, or 0
SIM_EXPORT int simDead();                              // the status that ended the process's use of GPUs, or 0
// ends the process where the real function may wait for ever: on a lost GPU
SIM_EXPORT void simHangs(const char *function);
SIM_EXPORT int simQueue(CUstream stream, std::function<std::string()> *work);  // takes over the content of work
SIM_EXPORT int simTake(CUcontext c, long bytes);  // device memory for a library, or back; 2 when there is none
SIM_EXPORT int simWait(CUstream stream);
SIM_EXPORT void simSpend(double seconds);  // that the work which runs takes, where RNA_SIM_CLOCK is set
SIM_EXPORT void simLive(const char *kind, int change);  // counts objects that wait for their release
// the same for objects of the current context
SIM_EXPORT void simHandle(const char *kind, CUcontext *owner, int change);
SIM_EXPORT int simFault(const char *plan);              // sets the plan; 1 when it does not parse
SIM_EXPORT const char *simLeaks();                      // unreleased objects, "" if there are none
SIM_EXPORT unsigned long long simCalls(const char *function);  // since the start; "" for all
// The bytes of the device's memory that completed work has read and written since the start, each byte once for each
// piece of work: copies, fills, products, graphs of cuDNN's, and kernels that are compiled with SIM_CHECK.
SIM_EXPORT void simMove(size_t read, size_t written);
SIM_EXPORT void simMoved(unsigned long long *read, unsigned long long *written);
SIM_EXPORT int simChecks();  // whether kernels are compiled with SIM_CHECK
SIM_EXPORT int simFirstContext();  // whether no primary context of the current one's device was destroyed before it
SIM_EXPORT void simLaunched(const char *kernel);                       // counts among the calls

namespace sim {

extern std::recursive_mutex lock;

using Work = std::function<std::string()>;  // returns "" or the error

// A Node of a graph is work after that of other nodes.
struct Node {
	Work work;
	std::vector<size_t> after;
};

// A Capture is a graph in the making.
struct Capture {
	CUstream origin;  // where it began
	CUstreamCaptureMode mode;
	std::thread::id thread;  // that began it
	bool invalid = false, over = false;
	std::vector<Node> nodes;
	std::map<CUstream, std::vector<size_t>> tails;  // the last nodes of each stream in it
};

// A Record is a point in a stream that was reached or not; in a capture, the nodes before it.
struct Record {
	CUstream stream;
	bool done = false;
	double time = 0;
	std::shared_ptr<Capture> capture;
	std::vector<size_t> nodes;
};

extern thread_local CUcontext current;

CUresult fail(CUcontext c, CUresult code, const std::string &why);  // ends a context

// Streams.
CUresult queue(CUcontext c, CUstream s, Work work);
CUresult drain(CUcontext c, CUstream s);   // runs the queued work
CUresult drainAll(CUcontext c);
CUstream resolve(CUcontext c, CUstream s);  // nullptr when there is no such stream

// Captures. A refused call ends them.
CUresult record(CUstream s, Work work);        // instead of queueing it
CUresult spoil(CUstream s, CUresult code);     // ends the capture that s is in, if any, and gives the code back
CUresult implicit(CUcontext c, CUstream s);    // refuses the null stream beside a capture that it would wait for
CUresult unsafe();                             // refuses calls that must not be made during a capture
CUresult enclosing(CUcontext c);               // refuses to wait for a context that captures
CUresult waitCaptured(CUstream s, const std::shared_ptr<Record> &r);
void dropStream(CUstream s);
void dropGraphs(CUcontext c, bool lost);

// Memory.
bool inRange(CUcontext c, const void *p, size_t bytes);  // of device memory, or of host memory that is pinned
bool pinned(const void *p, size_t bytes);
void releaseAll(CUcontext c, bool lost);  // objects that c still holds
void dropModules(CUcontext c, bool lost);
bool blockAt(const void *p, uintptr_t *from, uintptr_t *to);  // the allocation that holds an address
void open(bool on);            // device memory can be touched in between, by this thread
size_t used(int device);
CUresult take(CUcontext c, long bytes);  // device memory that the driver or a library takes for itself, or gives back

template <class T> bool known(const std::set<T> &all, T x) { return all.count(x) != 0; }
extern std::set<CUcontext> contexts;
extern std::set<CUevent> events;
extern std::set<CUmodule> modules;
extern std::set<CUgraph> graphs;
extern std::set<CUgraphExec> execs;

// Settings.
long setting(const char *name, long fallback);
int deviceCount();                // that CUDA_VISIBLE_DEVICES lets be seen
std::string uuidText(int device);  // by physical number
int physical(int device);         // the number of a device beside those that are not seen
size_t elsewhere(int device);     // bytes that other processes hold
size_t deviceBytes();
int capability();  // as 90 for 9.0

}  // namespace sim

struct CUstream_st {
	CUcontext context;
	bool blocking;
	int priority;
	unsigned flags;
	std::deque<sim::Work> work;
	std::shared_ptr<sim::Capture> capture;
};

struct CUctx_st {
	int device;
	unsigned flags;
	CUresult pending = CUDA_SUCCESS;  // one that the next wait finds
	CUstream_st null{};
	std::set<CUstream> streams;
	std::map<std::string, int> handles;  // of other libraries
	size_t taken = 0;                    // bytes of device memory that nobody sees
};

struct CUevent_st {
	CUcontext context;
	unsigned flags;
	std::shared_ptr<sim::Record> last;
};

struct CUgraph_st {
	CUcontext context;
	std::vector<sim::Node> nodes;
};

struct CUgraphExec_st {
	CUcontext context;
	std::vector<sim::Work> work;  // in the order in which it runs
};

// A call that needs a current context that is well.
#define CALL(name)                                    \
	std::lock_guard<std::recursive_mutex> held(sim::lock); \
	if (int bad = simEnter(#name)) return (CUresult)bad;   \
	CUcontext ctx = sim::current;                     \
	if (!ctx) return CUDA_ERROR_INVALID_CONTEXT
// One that needs no context.
#define PLAIN(name)                                   \
	std::lock_guard<std::recursive_mutex> held(sim::lock); \
	if (int bad = simEnter(#name)) return (CUresult)bad
// One that must not be made while a capture goes on.
#define SAFE \
	if (CUresult refused = sim::unsafe()) return refused
// A release runs despite earlier errors, and then returns them.
#define RELEASE(name)                                 \
	std::lock_guard<std::recursive_mutex> held(sim::lock); \
	CUresult late = (CUresult)simEnter(#name);        \
	CUcontext ctx = sim::current;                     \
	if (!ctx) return late ? late : CUDA_ERROR_INVALID_CONTEXT; \
	if (!late) late = (CUresult)simDead()
