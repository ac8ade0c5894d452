// Command mutants plants faults in packages and counts those that their tests miss.
//
//	go run ./internal/mutants [-share 1] [-seed 0] [-match regexp] [-workers 2] [-v] [package ...]
//
// It rewrites the sources so that one build of the tests holds every fault; an environment variable turns one on, and
// so none costs a build. A first run of each test, with -short, notes which tests reach which fault; only these run
// with it on, the fastest first, until one fails. The kinds are:
//
//	kind | from | to
//	operator | a + b, a * b, a += b, a *= b | a − b, a / b, and the inverse
//	boundary | a < b, a <= b of integers | a <= b, a < b
//	negation | comparisons, if c | their negation
//	logic | a && b | a || b, and the inverse
//	more, less | a constant number c | c + 1 and c − 1; of floats 10c and c/10
//	function | min, math.Sqrt(x), math.Abs(x), math.Log(x), math.Exp(x) | max, x, and the inverse
//	omission | an assignment, a call, break or continue | nothing
//
// -share plants a fixed sample, about 80 faults of a group at the least, by a hash of each fault, so that edits of
// other lines leave the sample as it is; -seed takes another sample. -match plants only the faults of the sample whose
// name, as survivors.txt has it, matches. Under load -workers 1 is the better judge: a test that is too slow counts as
// one that fails.
//
// survivors.txt lists the faults that no test finds, each with the reason: "same", if the fault changes no result,
// because it moves only speed, memory or an error's text, or because both codes agree; or "open". The command fails if
// a survivor is not listed, if one that is listed as open is found, or if more than 3 % of the faults that change a
// result survive.
package main
