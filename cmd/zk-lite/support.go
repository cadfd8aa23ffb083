package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/app/config"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/httpapi"
)

const (
	// bundleTimeout is how long a server may be silent.
	bundleTimeout = 3 * time.Second
	// maxBundled bounds each file of a bundle; of a log it is the end.
	maxBundled = 16 << 20
)

// bundled is what servers are asked. None of it has data of znodes; paths and addresses of clients it has.
var bundled = []string{
	"/livez", "/readyz?verbose", "/metrics", "/v1/cluster", "/commands/connections", "/commands/watch_summary",
	"/v1/slow/requests", "/v1/slow/entries", "/v1/expired-sessions",
	"/v1/top?by=requests", "/v1/top?by=bytes", "/v1/top?by=held", "/v1/top?by=watches",
}

func supportCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "support",
		Short: "Collect facts about servers for someone who helps",
		Long:  `Collect facts about servers for someone who helps with a problem.`,
		Args:  noConfigArgument,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(bundleCommand())
	return c
}

// bundle is one that is being written.
type bundle struct {
	tar *tar.Writer
	now time.Time
}

func bundleCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "bundle FILE",
		Short: "Write settings, health, metrics, versions and the log of a server into a tar.gz",
		Long: `Write into a new FILE (tar.gz): what doctor finds, all settings with their sources, versions,
and what the servers of --http say of themselves, by default the one of this
configuration; with --log the end of a log file. The ensemble, slow requests, expired
sessions and who makes the load are shown to administrators only: give --auth where one is
configured. No passwords, keys, tokens or data of znodes are in it; paths of znodes and
addresses of clients are. Flags and variables are those of "zk-lite server".`,
		Example: `  zk-lite support bundle zk1.tar.gz --config /etc/zk-lite/zoo.cfg --auth digest:super
  journalctl -u zk-lite > zk1.log; zk-lite support bundle zk1.tar.gz --log zk1.log`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("want the name of the file to write, as in zk-lite support bundle zk1.tar.gz")
			}
			return nil
		},
	}
	config.BindFlags(c.Flags())
	open := cli.BindHTTP(c, bundleTimeout)
	log := c.Flags().String("log", "", "`file` with the server's log")
	c.RunE = func(c *cobra.Command, args []string) error {
		settings, _, _ := config.Load(c.Flags(), os.LookupEnv) // doctor reports what is wrong with them
		api, err := open(c.Context(), ownURL(&settings))
		if err != nil {
			return err
		}
		f, err := os.OpenFile(args[0], os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		z := gzip.NewWriter(f)
		b := &bundle{tar.NewWriter(z), time.Now()}
		err = errors.Join(b.local(c, *log), b.servers(c.Context(), api),
			b.tar.Close(), z.Close(), f.Close())
		if err != nil {
			return errors.Join(err, os.Remove(args[0]))
		}
		fmt.Fprintf(c.OutOrStdout(), "%s is written; read it before you send it: it has paths of znodes and "+
			"addresses\n",
			args[0])
		return nil
	}
	return withSettings(c)
}

// ownURL is the HTTP API of the server with these settings, as this machine reaches it.
func ownURL(s *config.Settings) string {
	scheme, host := "http", s.AdminAddress
	if s.AdminForceHTTPS {
		scheme = "https"
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return scheme + "://" + net.JoinHostPort(host, strconv.Itoa(s.AdminPort))
}

func (b *bundle) add(name string, content []byte) error {
	h := &tar.Header{Name: "zk-lite-support/" + name, Mode: 0o600, Size: int64(len(content)), ModTime: b.now}
	if err := b.tar.WriteHeader(h); err != nil {
		return err
	}
	_, err := b.tar.Write(content)
	return err
}

func (b *bundle) addJSON(name string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	return errors.Join(err, b.add(name, append(text, '\n')))
}

// local is what this machine knows.
func (b *bundle) local(c *cobra.Command, log string) error {
	errs := []error{b.addJSON("version.json", readBuildInfo()), b.addJSON("doctor.json", diagnose(c, nil))}
	values, err := config.Explain(c.Flags(), os.LookupEnv)
	var text strings.Builder
	if err != nil {
		fmt.Fprintln(&text, err)
	}
	for _, v := range values {
		fmt.Fprintf(&text, "%s\t%s\t%s\n", v.Name, v.Text, v.Source)
	}
	errs = append(errs, b.add("settings.txt", []byte(text.String())))
	if log != "" {
		end, err := endOf(log)
		if err != nil {
			return fmt.Errorf("--log: %w", err)
		}
		errs = append(errs, b.add("server.log", end))
	}
	return errors.Join(errs...)
}

// endOf is the last part of a file.
func endOf(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.NewSectionReader(f, max(0, info.Size()-maxBundled), maxBundled))
}

// servers are asked each for itself. What they do not answer is in the bundle as the reason.
func (b *bundle) servers(ctx context.Context, api *httpapi.Client) (err error) {
	api.Each(func(one *httpapi.Client) bool {
		at, _ := url.Parse(one.URLs[0]) // ParseURLs has
		for _, target := range bundled {
			name := strings.NewReplacer("/", "_", "?", "_").Replace(strings.Trim(target, "/"))
			text, askErr := answer(ctx, one, target)
			if askErr != nil {
				text = []byte("no answer: " + askErr.Error() + "\n")
			}
			err = errors.Join(err, b.add(strings.ReplaceAll(at.Host, ":", "_")+"/"+name, text))
		}
		return ctx.Err() != nil
	})
	return errors.Join(err, ctx.Err())
}

func answer(ctx context.Context, one *httpapi.Client, target string) ([]byte, error) {
	resp, err := one.Do(ctx, &httpapi.Request{Method: http.MethodGet, Target: target, Repeatable: true})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(io.LimitReader(resp.Body, maxBundled))
}
