package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/spf13/cobra"

	"onlinerna/cmd/internal/cli"
	"onlinerna/internal/terminal"
	"onlinerna/nn/device"
	"onlinerna/train/serve"
)

type serveFlags struct {
	evalFlags
	server serve.Options
	listen string
}

func newServe() *cobra.Command {
	f := &serveFlags{}
	cmd := &cobra.Command{
		Use:   "serve WEIGHTS [options]",
		Short: "Answer HTTP requests for the classes of images",
		Long: `Answer HTTP requests for the classes of images. WEIGHTS is a file, or the folder of a run, which stands for its
best weights.

POST /predict, or POST / for short, takes an image as the body, or several as the files of a form. The answer is the
JSON of rna predict; ?top=3 asks for three classes. Errors are JSON, too: {"error": "…"}. GET /healthz says whether the
server takes requests. GET /metrics has counters for Prometheus.

Images that come within a few milliseconds are one batch. An image's answer does not depend on the others: batches have
those sizes for which the device gives the same bits.

Bodies that are too long and images that are too large get status 413, late bodies 408, and requests beyond the queue
429. After Ctrl-C or SIGTERM the server answers the requests under way, and ends. It listens to this machine alone
unless --listen names another address: it knows no passwords and no TLS, so put a proxy before it.`,
		Example: `  rna serve runs/fine
  curl --data-binary @cat.jpg http://127.0.0.1:8765/predict
  curl -F a=@cat.jpg -F b=@dog.jpg 'http://127.0.0.1:8765/predict?top=1'
  rna serve resnet50.pth --model resnet50 --listen :80 --queue 1000`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(args); err != nil {
				return cli.Usage(cmd, err)
			}
			return f.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	w, d := f.inputGroups()
	w.Lookup("weights").Usage = "`file` or folder of a run, in place of WEIGHTS"
	s := cli.NewGroup("Server")
	s.StringVar(&f.listen, "listen", "127.0.0.1:8765", "`address` and port; port 0 takes a free one")
	s.Values("listen", "127.0.0.1:8765", ":8765")
	s.IntVar(&f.server.Top, "top", 5, "classes of each image, for requests that do not say")
	s.IntVar(&f.server.Batch, "batch", 16, "most images a forward pass")
	s.DurationVar(&f.server.Wait, "batch-wait", 5*time.Millisecond, "`time` that an image waits for others to come")
	s.IntVar(&f.server.Queue, "queue", 256, "images under way; beyond it requests get 429")
	s.Bytes(&f.server.MaxBytes, "max-body", "size of a request's body, as 8MB; beyond it 413")
	f.server.MaxBytes = 32 << 20
	s.Lookup("max-body").DefValue = "32MiB"
	s.DurationVar(&f.server.Timeout, "timeout", 30*time.Second, "`time` of a request: 408 if its body is late, 503 if the "+
		"answer is")
	s.IntVar(&f.server.Connections, "connections", 1024, "open connections; further ones are closed at once")
	r := cli.NewGroup("Run")
	f.runOptions(r)
	r.Lookup("decode-memory").Usage = "memory that decoding takes at most, by the `size`s that images declare, as 2GB; " +
		"an image that needs more gets 413 (default: 512 MiB)"
	cli.AddGroups(cmd, w, d, s, r)
	return cmd
}

// check takes the weights that the arguments name.
func (f *serveFlags) check(args []string) error {
	if len(args) > 1 {
		return fmt.Errorf("%d arguments: want a file of weights, or the folder of a run; images come by HTTP", len(args))
	}
	if len(args) == 0 && f.Weights == "" {
		return errors.New("no weights: name a file of them, or the folder of a run")
	}
	if err := f.named(args); err != nil {
		return err
	}
	for _, n := range []struct {
		name  string
		value int64
	}{{"top", int64(f.server.Top)}, {"batch", int64(f.server.Batch)}, {"queue", int64(f.server.Queue)},
		{"connections", int64(f.server.Connections)}, {"max-body", f.server.MaxBytes}} {
		if n.value < 1 {
			return fmt.Errorf("--%s %d: must be at least 1", n.name, n.value)
		}
	}
	if f.server.Wait <= 0 || f.server.Wait > time.Minute || f.server.Timeout <= 0 || f.server.Timeout > time.Hour {
		return fmt.Errorf("--batch-wait %v and --timeout %v: want times above 0, up to 1m and 1h", f.server.Wait, f.server.Timeout)
	}
	if f.server.Queue < f.server.Batch {
		return fmt.Errorf("--queue %d holds less than a --batch of %d", f.server.Queue, f.server.Batch)
	}
	return nil
}

func (f *serveFlags) run(ctx context.Context, out, log io.Writer) (err error) {
	listener, err := net.Listen("tcp", f.listen)
	if err != nil {
		return fmt.Errorf("--listen %s: %w", f.listen, err)
	}
	defer listener.Close()
	f.Open = f.opener(log)
	p, err := f.OpenPredictor(log, nil)
	if err != nil {
		return err
	}
	defer func() { err = device.Closed(err, p.Close()) }()
	o := f.server
	o.Workers, o.DecodeMemory, o.FastDecode, o.Log = f.Workers, f.DecodeMemory, f.FastDecode, log
	s, err := serve.New(p, o)
	if err != nil {
		return err
	}
	fmt.Fprintln(log, terminal.Wrap(log, fmt.Sprintf("%s on %s; %s", p.Meta.Model, p.Net.Device.Name(), s.Batches()), "  "))
	fmt.Fprintf(out, "http://%s/predict\n", listener.Addr())
	if err := s.Serve(ctx, listener); err != nil {
		return err
	}
	fmt.Fprintln(log, "stopped")
	return nil
}
