package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"onlinerna/cmd/internal/cli"
	"onlinerna/internal/catalogue"
	"onlinerna/internal/fetch"
	"onlinerna/internal/terminal"
	"onlinerna/internal/text"
	"onlinerna/nn"
	"onlinerna/train/report"
	"onlinerna/train/statedict"
)

type getFlags struct {
	mirror, cache string
	quiet         bool
}

func newGet() *cobra.Command {
	f := &getFlags{}
	cmd := &cobra.Command{
		Use:   "get [NAME...] [options]",
		Short: "Download sets of images and weights",
		Long: `Download sets of images, torchvision's weights, and weights of Hugging Face's hub, which --data and --init then
take by name. Without a name, list the sets and torchvision's weights. OWNER/NAME is a repository of the hub, and
OWNER/NAME@REVISION one of its branches, tags or commits. HF_TOKEN has the token that some ask for.

The same command resumes an interrupted download. It checks each file by its size and checksum, also a file that is
already in its place. Without a connection it prints the addresses of the files.`,
		Example: `  rna get cifar10 resnet50 timm/vit_base_patch16_224.augreg2_in21k_ft_in1k
  rna train --data cifar10
  rna train --init resnet50 --data photos
  rna predict timm/vit_base_patch16_224.augreg2_in21k_ft_in1k cat.jpg`,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return getNames(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			items, repos, err := getItems(args)
			if err != nil {
				return cli.Usage(cmd, err)
			}
			if f.cache == "" {
				if f.cache, err = catalogue.Dir(); err != nil {
					return err
				}
			}
			if len(args) == 0 {
				return f.list(cmd.OutOrStdout())
			}
			for _, it := range items {
				if err := f.get(cmd.Context(), it, cmd.OutOrStdout(), cmd.ErrOrStderr()); err != nil {
					return err
				}
			}
			for _, r := range repos {
				if err := f.getRepo(cmd.Context(), r, cmd.OutOrStdout(), cmd.ErrOrStderr()); err != nil {
					return err
				}
			}
			return nil
		},
	}
	o := cli.NewGroup("Options")
	o.StringVar(&f.mirror, "mirror", "", "`address` of a folder that has the files by their names, or of a "+
		"mirror of the hub, in place of the official ones")
	o.StringVar(&f.cache, "cache", "", "`folder` for downloads (default: that of the environment variable "+
		catalogue.Variable+", or rna in the user's cache folder)")
	o.BoolVarP(&f.quiet, "quiet", "q", false, "no progress")
	cli.AddGroups(cmd, o)
	return cmd
}

// gettable lists the usable items: images, and weights of available nets.
func gettable() []catalogue.Item {
	nets := modelNames()
	return slices.DeleteFunc(catalogue.All(), func(it catalogue.Item) bool {
		return it.Kind == catalogue.Weights && !slices.Contains(nets, it.Net)
	})
}

func getNames() (names []string) {
	for _, it := range gettable() {
		names = append(names, it.Name)
	}
	return names
}

// hubAddress is how web pages and timm begin a repository's name.
var hubAddress = regexp.MustCompile(`^(?:https?://)?(?:huggingface\.co/|hf\.co/|hf[-_]hub:|hf://)`)

// getItems finds what the names mean.
func getItems(names []string) (items []catalogue.Item, repos []catalogue.Repo, err error) {
	known := getNames()
	for _, name := range names {
		if r, ok := catalogue.ParseRepo(name); ok {
			repos = append(repos, r)
			continue
		}
		it, ok := catalogue.Find(name)
		if !ok || !slices.Contains(known, it.Name) {
			hint := cli.Suggest(name, known, "")
			if id := hubAddress.ReplaceAllString(name, ""); id != name {
				if r, ok := catalogue.ParseRepo(strings.TrimSuffix(id, "/")); ok {
					hint = fmt.Sprintf(", did you mean %s?", r)
				}
			}
			if _, err := nn.Lookup(name); err == nil && hint == "" {
				hint = ": torchvision has no weights of this net"
			}
			return nil, nil, fmt.Errorf("%s is nothing that can be downloaded%s; \"rna get\" lists it all, and OWNER/NAME "+
				"is a repository of Hugging Face's hub", name, hint)
		}
		items = append(items, it)
	}
	return items, repos, nil
}

func (f *getFlags) list(out io.Writer) error {
	rows := [][]string{{"NAME", "SIZE", "HERE", "CONTENT"}}
	for _, it := range gettable() {
		if of, _ := catalogue.Find(it.Net); it.Name != it.Net && it.Path("") == of.Path("") {
			continue // the default version, which the net's own name means
		}
		here := ""
		if it.Here(f.cache) {
			here = "yes"
		}
		rows = append(rows, []string{it.Name, text.Bytes(it.Size()), here, it.About})
	}
	page := terminal.NewPage(out)
	page.List(rows)
	fmt.Fprintf(page, "\nThe folder for downloads is %s\n", f.cache)
	return page.Flush(out)
}

// options are those of a download, whose progress they show.
func (f *getFlags) options(b *terminal.Bar, stderr io.Writer) fetch.Options {
	now := ""
	next := time.Now().Add(report.Every)
	return fetch.Options{
		Mirror: f.mirror,
		Agent:  "rna",
		Log: func(format string, args ...any) {
			b.Finish()
			now = ""
			fmt.Fprintf(stderr, format+"\n", args...)
		},
		Progress: func(file string, done, total int64) {
			if now != file {
				now = file
				b.Start(file, total, terminal.CountBytes)
			}
			b.Set(min(done, total)) // for a size that is not known exactly
			if !f.quiet && !b.Shown() && time.Now().After(next) {
				next = time.Now().Add(report.Every)
				fmt.Fprintf(stderr, "%s: %s of %s\n", file, text.Bytes(done), text.Bytes(total))
			}
		},
	}
}

func (f *getFlags) get(ctx context.Context, it catalogue.Item, stdout, stderr io.Writer) error {
	b := terminal.NewBar(stderr, f.quiet)
	defer b.Finish()
	return f.bring(ctx, it, f.options(b, stderr), b, stdout)
}

// getRepo downloads the weights of a repository of the hub.
func (f *getFlags) getRepo(ctx context.Context, r catalogue.Repo, stdout, stderr io.Writer) error {
	b := terminal.NewBar(stderr, f.quiet)
	defer b.Finish()
	o := f.options(b, stderr)
	if f.mirror == "" {
		o.Token = fetch.HubToken()
	}
	it, err := fetch.Repo(ctx, r, statedict.HubFiles, o)
	if ctx.Err() != nil {
		return cli.Stopped("interrupted: the same command goes on")
	}
	if err != nil {
		return err
	}
	o.Mirror = "" // it has been asked
	return f.bring(ctx, it, o, b, stdout)
}

// bring downloads an item and says how to use it.
func (f *getFlags) bring(ctx context.Context, it catalogue.Item, o fetch.Options, b *terminal.Bar,
	stdout io.Writer) error {
	path, err := fetch.Get(ctx, it, f.cache, o)
	b.Finish()
	if errors.Is(err, context.Canceled) {
		return cli.Stopped("interrupted: the same command goes on")
	}
	if err != nil {
		return err
	}
	option, value := "--data", it.Name
	if it.Kind == catalogue.Weights {
		option = "--init"
	}
	if dir, err := catalogue.Dir(); err != nil || filepath.Clean(dir) != filepath.Clean(f.cache) {
		value = path // not if names are looked up
	}
	if strings.ContainsAny(value, " \t") {
		value = fmt.Sprintf("%q", value)
	}
	_, err = fmt.Fprintf(stdout, "%s is in %s: %s %s\n", it.Name, path, option, value)
	return err
}
