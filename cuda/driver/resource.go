//go:build gpu && cgo

package driver

import "fmt"

// A Resource is what a library keeps on a context: a handle of cuBLAS, descriptors of cuDNN. Like memory and streams it is closed with
// the context where its owner did not.
type Resource struct {
	c     *Context
	name  string
	close func() error
}

// Adopt makes a resource of a kind, as messages name it, inside [Context.Do]. close gives it back, once, on the owner thread,
// and is not called on a lost GPU.
func (c *Context) Adopt(kind string, close func() error) *Resource {
	r := &Resource{c, kind, close}
	c.handles[r] = struct{}{}
	return r
}

// Check says that the resource was closed. It is called inside [Context.Do].
func (r *Resource) Check() error {
	if _, open := r.c.handles[r]; !open {
		return fmt.Errorf("%s: %w", r.name, ErrClosed)
	}
	return nil
}

// Close gives the resource back. A second Close does nothing.
func (r *Resource) Close() error { return r.c.drop(r) }

func (r *Resource) kind() string { return r.name }

func (r *Resource) release() error {
	return r.close()
}
