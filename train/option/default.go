package option

// Default sets a field that has its type's zero value.
func Default[T comparable](field *T, to T) {
	var zero T
	if *field == zero {
		*field = to
	}
}

// DefaultPointer sets a field that is nil.
func DefaultPointer[T any](field **T, to T) {
	if *field == nil {
		*field = &to
	}
}
