package raftlogger

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/internal/repeats"
)

// New lets hashicorp/raft, which logs through hclog, log through slog. When ctx
// has ended, raft's server is being closed.
func New(ctx context.Context, l *slog.Logger, name string) hclog.Logger {
	return &logger{
		slog: l.With("subsystem", name), base: l, name: name, ctx: ctx, repeats: &repeats.Filter{},
	}
}

type logger struct {
	slog, base *slog.Logger
	name       string
	args       []any
	ctx        context.Context
	repeats    *repeats.Filter // of all loggers made from the same one
}

// levelOf maps levels. What raft calls info happens at elections only, but its
// debug and trace lines come with every message.
func levelOf(l hclog.Level) slog.Level {
	switch l {
	case hclog.Trace:
		return slog.LevelDebug - 4
	case hclog.Debug:
		return slog.LevelDebug
	case hclog.Warn:
		return slog.LevelWarn
	case hclog.Error:
		return slog.LevelError
	}
	return slog.LevelInfo
}

// level is that at which a message is logged. Raft's own is too high for what belongs
// to a change of leaders, and for what a server's closing brings about.
func (l *logger) level(level hclog.Level, msg string, args []any) slog.Level {
	at := levelOf(level)
	switch {
	case at <= slog.LevelDebug:
	case l.ctx.Err() != nil && (l.name == Net || anyEnding(args)):
		return slog.LevelDebug
	case msg == "peer has newer term, stopping replication",
		msg == "new leader elected, stepping down":
		return min(at, slog.LevelInfo)
	}
	return at
}

// Net is the name of the transport's logger.
const Net = "raft.net"

// anyEnding reports whether an error among args is one of a connection that has ended.
func anyEnding(args []any) bool {
	return slices.ContainsFunc(args, func(v any) bool {
		err, ok := v.(error)
		var op *net.OpError
		return ok && (errors.As(err, &op) || slices.ContainsFunc([]error{
			net.ErrClosed, io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, context.Canceled,
			os.ErrDeadlineExceeded, raft.ErrRaftShutdown, raft.ErrTransportShutdown,
			raft.ErrPipelineShutdown,
		}, func(e error) bool { return errors.Is(err, e) }))
	})
}

// expand makes all values such that every handler of slog shows them: one for JSON would
// leave out what is not exported, and does not know String.
func expand(args []any) []any {
	out := make([]any, len(args))
	for i, v := range args {
		out[i] = plain(v)
	}
	return out
}

func plain(v any) any {
	switch v := v.(type) {
	case nil, error:
		return v
	case raft.Server:
		return shortServer(v)
	case []raft.Server:
		names := make([]string, len(v))
		for i, s := range v {
			names[i] = shortServer(s)
		}
		return strings.Join(names, ", ")
	case hclog.Format: // which hclog would format
		return formatted(v)
	}
	if slog.AnyValue(v).Kind() == slog.KindAny {
		return fmt.Sprintf("%+v", v)
	}
	return v
}

// shortServer leaves out the address, which is the id (addressOf).
func shortServer(s raft.Server) string {
	if s.Suffrage == raft.Voter {
		return string(s.ID)
	}
	return string(s.ID) + " (no vote)"
}

func formatted(f hclog.Format) any {
	if len(f) == 0 {
		return ""
	}
	args := slices.Clone(f[1:])
	for i, v := range args {
		if servers, ok := v.([]raft.Server); ok {
			args[i] = plain(servers)
		}
	}
	return fmt.Sprintf(fmt.Sprint(f[0]), args...)
}

func (l *logger) Log(level hclog.Level, msg string, args ...any) {
	at := l.level(level, msg, args)
	if !l.slog.Enabled(context.Background(), at) {
		return
	}
	args = expand(args)
	if at > slog.LevelInfo || at == slog.LevelInfo && slices.Contains(args, any("term")) {
		// What else is information tells of a change each time, as of leaders.
		pass, leftOut := l.repeats.Pass(repeatKey(l.name, msg, args))
		switch {
		case !pass:
			at = slog.LevelDebug
		case leftOut > 0:
			args = append(args, "left_out", leftOut)
		}
	}
	l.slog.Log(context.Background(), at, msg, args...)
}

// repeatKey is what two messages have in common that say the same of the same servers.
func repeatKey(name, msg string, args []any) string {
	var b strings.Builder
	b.WriteString(name + "\x00" + msg)
	for i := 0; i+1 < len(args); i += 2 {
		switch args[i] {
		case "error", "time", "backoff time": // never twice the same
		default:
			fmt.Fprintf(&b, "\x00%v=%v", args[i], args[i+1])
		}
	}
	return b.String()
}

func (l *logger) Trace(msg string, args ...any) { l.Log(hclog.Trace, msg, args...) }
func (l *logger) Debug(msg string, args ...any) { l.Log(hclog.Debug, msg, args...) }
func (l *logger) Info(msg string, args ...any)  { l.Log(hclog.Info, msg, args...) }
func (l *logger) Warn(msg string, args ...any)  { l.Log(hclog.Warn, msg, args...) }
func (l *logger) Error(msg string, args ...any) { l.Log(hclog.Error, msg, args...) }

func (l *logger) enabled(level hclog.Level) bool {
	return l.slog.Enabled(context.Background(), levelOf(level))
}

func (l *logger) IsTrace() bool { return l.enabled(hclog.Trace) }
func (l *logger) IsDebug() bool { return l.enabled(hclog.Debug) }
func (l *logger) IsInfo() bool  { return l.enabled(hclog.Info) }
func (l *logger) IsWarn() bool  { return l.enabled(hclog.Warn) }
func (l *logger) IsError() bool { return l.enabled(hclog.Error) }

func (l *logger) ImpliedArgs() []any { return l.args }
func (l *logger) Name() string       { return l.name }

func (l *logger) With(args ...any) hclog.Logger {
	c := *l
	c.slog, c.args = l.slog.With(expand(args)...), append(l.args[:len(l.args):len(l.args)], args...)
	return &c
}

func (l *logger) Named(name string) hclog.Logger { return l.ResetNamed(l.name + "." + name) }

func (l *logger) ResetNamed(name string) hclog.Logger {
	c := *l
	c.slog, c.name = l.base.With("subsystem", name).With(expand(l.args)...), name
	return &c
}

// SetLevel does nothing: the level is the slog handler's.
func (l *logger) SetLevel(hclog.Level) {}

func (l *logger) GetLevel() hclog.Level {
	for _, level := range []hclog.Level{hclog.Trace, hclog.Debug, hclog.Info, hclog.Warn} {
		if l.enabled(level) {
			return level
		}
	}
	return hclog.Error
}

func (l *logger) StandardLogger(*hclog.StandardLoggerOptions) *log.Logger {
	return slog.NewLogLogger(l.slog.Handler(), slog.LevelInfo)
}

func (l *logger) StandardWriter(o *hclog.StandardLoggerOptions) io.Writer {
	return l.StandardLogger(o).Writer()
}
