//go:build !gpu

package cuda

// Devices returns [ErrNotBuilt] in this build.
func Devices() ([]Info, error) { return nil, ErrNotBuilt }

// Open returns [ErrNotBuilt] in this build.
func Open(ordinal int, o Options) (*Context, error) { return nil, ErrNotBuilt }

// A Context is a GPU in use. This build has none.
type Context struct{ _ [0]func() }

// Info describes the context's GPU.
func (c *Context) Info() Info { return Info{} }

// Close gives the context back.
func (c *Context) Close() error { return nil }

func (r *Report) load() {}
