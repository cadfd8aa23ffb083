package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/zk-lite/zk-lite/app"
	"github.com/zk-lite/zk-lite/app/config"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli"
	"github.com/zk-lite/zk-lite/internal/process"
	"github.com/zk-lite/zk-lite/internal/repeats"
	"github.com/zk-lite/zk-lite/internal/sdnotify"
)

func serverCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "server",
		Short: "Run one server, alone or as a member of an ensemble",
		Long: `Run one server. Without a configuration it stands alone, listens on port 2181
and keeps its data in ./zk-lite-data. With --config it reads ZooKeeper's own
zoo.cfg. Every setting is also a flag and an environment variable.`,
		Example: `  zk-lite server
  zk-lite server --config /etc/zookeeper/zoo.cfg
  zk-lite server --config /etc/zookeeper/zoo.cfg --check   # and start nothing
  ZK_LITE_CLIENT_PORT=2182 zk-lite server --data-dir /var/lib/zk-lite`,
		Args: noConfigArgument,
	}
	config.BindFlags(c.Flags())
	check := c.Flags().Bool("check", false,
		"check the configuration, print every setting with its source, and start nothing")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := runsServers(runtime.GOOS); err != nil {
			return err
		}
		s, notices, err := config.Load(c.Flags(), os.LookupEnv)
		if err != nil {
			return err
		}
		notices = append(notices, config.UnknownVariables(os.Environ())...)
		if *check {
			return checkServer(c, s, notices)
		}
		logger := newLogger(os.Stderr, s.LoggerJSON, s.LoggerLevel)
		for _, n := range notices {
			logger.Log(c.Context(), n.Level, n.Text, "key", n.Key, "at", n.Source)
		}
		manager, err := sdnotify.Open(os.Getenv)
		if err != nil {
			return err
		}
		defer process.TuneCollector(logger)()
		if s.AdjustProcessors {
			defer process.AdjustProcessors(logger)()
		}
		build := readBuildInfo()
		err = run(c.Context(), logger, func(fatal func(error)) (closer, error) {
			return app.Open(app.Options{
				Settings: s, Version: build.full(), Built: build.built(),
				Memory: process.Memory(), Logger: logger, Manager: manager, Fatal: fatal,
			})
		})
		if err == nil || !s.LoggerJSON {
			return err
		}
		logger.Error("the server has failed", "error", cli.Message(err)) // no line without the format
		return cli.Failed()
	}
	return withSettings(c)
}

// runsServers refuses operating systems on which servers have not been tested.
func runsServers(system string) error {
	if system == "windows" {
		return errors.New("servers run on Linux and macOS; on Windows this program has the commands for clients")
	}
	return nil
}

// checkServer is server with --check. What would be a warning in the log goes to standard error.
func checkServer(c *cobra.Command, s config.Settings, notices []config.Notice) error {
	for _, n := range notices {
		fmt.Fprintln(c.ErrOrStderr(), n)
	}
	logger := newLogger(c.ErrOrStderr(), false, slog.LevelInfo)
	if err := app.Check(app.Options{Settings: s, Logger: logger}); err != nil {
		return err
	}
	values, err := config.Explain(c.Flags(), os.LookupEnv)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SETTING\tVALUE\tFROM")
	for _, v := range values {
		fmt.Fprintf(w, "%s\t%s\t%s\n", v.Name, v.Text, v.Source)
	}
	return w.Flush()
}

// noConfigArgument refuses arguments, of which the first may be meant as a configuration.
func noConfigArgument(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("%q: want no arguments; a configuration is named with a flag, --config %s", args[0], args[0])
}

type closer interface{ Close() error }

// run opens something and closes it when ctx ends or it fails. SIGHUP, which scripts send
// to daemons so that they read their configuration or open their log again, ends it only if
// its terminal is gone.
func run(ctx context.Context, logger *slog.Logger, open func(fatal func(error)) (closer, error)) error {
	// A log whose reader has ended is no reason to end, as a full disk under it is none.
	signal.Ignore(syscall.SIGPIPE)
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	onTerminal := term.IsTerminal(int(os.Stdin.Fd()))
	failed := make(chan error, 1)
	x, err := open(func(err error) {
		select {
		case failed <- err:
		default:
		}
	})
	if err != nil {
		return err
	}
	for {
		select {
		case <-hangup:
			if onTerminal && !term.IsTerminal(int(os.Stdin.Fd())) {
				logger.Info("stopping, because the terminal is gone")
				return x.Close()
			}
			logger.Info("SIGHUP has no effect: a changed configuration needs a restart, and the log is standard error")
		case <-ctx.Done():
			logger.Info("stopping")
			return x.Close()
		case err := <-failed:
			// Nothing in order can be expected of a server that has failed: its disk
			// may hang. What was acknowledged is on disk.
			return err
		}
	}
}

// asText has JSON say what text does: 10.0.0.7:4711, 0x1000a2b and 300ms instead of an object and two numbers.
func asText(_ []string, a slog.Attr) slog.Attr {
	switch v := a.Value.Any().(type) {
	case time.Time, error:
	case fmt.Stringer:
		a.Value = slog.StringValue(v.String())
	}
	return a
}

// newLogger makes a log that does not grow faster than it may, unless it is to tell everything.
func newLogger(w io.Writer, asJSON bool, level slog.Level) *slog.Logger {
	o := &slog.HandlerOptions{Level: level}
	var h slog.Handler = slog.NewTextHandler(w, o)
	if asJSON {
		o.ReplaceAttr = asText
		h = slog.NewJSONHandler(w, o)
	}
	if level > slog.LevelDebug {
		h = repeats.NewHandler(h)
	}
	return slog.New(h)
}
