// Package average has the hooks that average the iterates of a run: [RNA], with the plain averages beside it, and the power average [EMA].
// They use a run as any hook can, by the exported methods of [hook.State].
//
// A run's way through RNA, file by file: a snapshot ends a segment of training (snapshot), it enters the window (window), which
// gives a point (point), the point gets BatchNorm statistics (statistics) and a score and may replace the iterate (score), and what a
// resumed run needs is kept (file). None of them calls one further on; rna.go calls them in turn.
package average
