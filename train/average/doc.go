// Package average implements the hooks that average the iterates of a run: [RNA], with the plain averages beside it,
// and the moving average [EMA]. Like any hook they use only the exported methods of [hook.State].
//
// RNA is divided into files by stage: a segment of training ends in a snapshot (snapshot.go), which enters the window
// (window.go), which yields a point (point.go), which gets BatchNorm statistics (statistics.go) and a score that
// decides whether it replaces the iterate (score.go); file.go saves the state for a resumed run. Each stage calls only
// earlier ones; rna.go calls them in turn.
package average
