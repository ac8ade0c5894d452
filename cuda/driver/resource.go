//go:build gpu && cgo

package driver

import "fmt"

// A Resource is an object that a library keeps on a context: a handle of cuBLAS, descriptors of cuDNN. Like memory and
// streams, the context closes it if its owner did not.
type Resource struct {
	c     *Context
	name  string
	close func() error
}

// Adopt registers a resource inside [Context.Do]; messages name it by kind. close frees it, once, on the owner thread,
// and is not called on a lost GPU.
func (c *Context) Adopt(kind string, close func() error) *Resource {
	r := &Resource{c, kind, close}
	c.handles[r] = struct{}{}
	return r
}

// Check returns an error if the resource is closed. Call it inside [Context.Do].
func (r *Resource) Check() error {
	if _, open := r.c.handles[r]; !open {
		return fmt.Errorf("%s: %w", r.name, ErrClosed)
	}
	return nil
}

// Close frees the resource. A second Close does nothing.
func (r *Resource) Close() error { return r.c.drop(r) }

func (r *Resource) kind() string { return r.name }

func (r *Resource) release() error {
	return r.close()
}
