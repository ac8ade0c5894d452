// Package average has the hooks that average the iterates of a run: [RNA], with the plain averages beside it, and the
// moving average [EMA]. They use a run as any hook can, by the exported methods of [hook.State].
//
// A run's way through RNA, file by file: a segment of training ends in a snapshot (snapshot), which enters the window
// (window), which gives a point (point), which gets BatchNorm statistics (statistics) and a score, by which it may
// replace the iterate (score); and what a resumed run needs is in files (file). Each calls those before it alone;
// rna.go calls them in turn.
package average
