# Tests of the kernels and their callers for emulated processors. The script that sources this file defines a function
# check, which gets arguments of go test.
check ./internal/simd ./internal/parallel ./nn/device/cpu/internal/... ./internal/simd/convert ./rna/kernel ./rna/convex/internal/kern
check -run '^(TestDevice|TestWorkersGiveEqualBits|TestGroupsEqualSingleSteps|TestGradInputGroups|TestDepthwiseGroups|TestEvaluationGroups|TestExpressionGroups|TestMaxPoolGradBehindReLU|TestNaNIsNotHidden|TestWinogradIsExact|TestWinogradErrors|TestNarrowProducts|TestStoredGroups)$' ./nn/device/cpu
check -run '^(TestGram|TestGramRow|TestCopies|TestRing|TestModesAgree|TestCombination|TestAndersonByHand)$' ./rna
check -run '^(TestGradients|TestLogisticExtremes|TestOptimum|TestBFGSInverse)$' ./rna/convex
