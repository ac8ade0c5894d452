//go:build !unix

package bench

func usageNow() Usage { return Usage{} }
