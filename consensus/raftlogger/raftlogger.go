// Package raftlogger adapts slog to hclog, through which hashicorp/raft logs.
//
// It lowers raft's levels and limits repeated lines. It does not interpret the lines, and starts no
// goroutine.
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
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/internal/repeats"
)

// New returns a logger for raft, or for the part of it with that name. When ctx has ended, raft is
// being shut down.
func New(ctx context.Context, l *slog.Logger, name string) hclog.Logger {
	return &logger{
		slog: l.With("subsystem", name), base: l, name: name, ctx: ctx,
		repeats: &repeats.Filter{}, messages: &repeats.Filter{},
	}
}

type logger struct {
	slog, base *slog.Logger
	name       string
	args       []any
	ctx        context.Context
	// Shared by all loggers made from the same one. A line passes if its message with the same values has
	// not passed a moment ago, and its message with any values not too often: values come from other
	// servers, and from anyone who claims to be one.
	repeats, messages *repeats.Filter
}

const (
	// linesOfMessage is how many lines with the same message pass in repeats.Every: a few
	// about each of the other servers.
	linesOfMessage = 10
	// maxKey bounds the bytes that are remembered of a line.
	maxKey = 512
)

// levelOf maps levels. Raft's own are too high by one: it reports as an error what any change of leaders
// causes. An error of this server is logged by our code that returned it to raft (package storage), or
// that asked raft for something.
func levelOf(l hclog.Level) slog.Level {
	switch l {
	case hclog.Trace:
		return slog.LevelDebug - 4
	case hclog.Debug:
		return slog.LevelDebug
	case hclog.Error:
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

// level is the level of a message. No one needs to know that raft's connections end while this server is
// shut down.
func (l *logger) level(level hclog.Level, args []any) slog.Level {
	if l.ctx.Err() != nil && (l.name == Net || anyEnding(args)) {
		return min(levelOf(level), slog.LevelDebug)
	}
	return levelOf(level)
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

// expand returns values that every slog handler can show. The JSON handler leaves out fields that are not
// exported, and does not call String.
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

// shortServer leaves out the address, which is the id.
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
	at := l.level(level, args)
	if !l.slog.Enabled(context.Background(), at) {
		return
	}
	key := repeatKey(l.name, msg, args)
	args = expand(args)
	if at >= slog.LevelInfo {
		pass, leftOut := l.repeats.Pass(key)
		if pass {
			var others int
			pass, others = l.messages.PassSome(linesOfMessage, l.name+"\x00"+msg)
			leftOut += others
		}
		switch {
		case !pass:
			at = slog.LevelDebug
		case leftOut > 0:
			args = append(args, "left_out", leftOut)
		}
	}
	l.slog.Log(context.Background(), at, msg, args...)
}

// repeatKey is what two messages about the same servers have in common: all but errors and times,
// which are never the same twice.
func repeatKey(name, msg string, args []any) string {
	var b strings.Builder
	b.WriteString(name + "\x00" + msg)
	for _, v := range args {
		switch v.(type) {
		case error, time.Duration, time.Time:
		default:
			fmt.Fprintf(&b, "\x00%v", plain(v))
		}
	}
	return b.String()[:min(b.Len(), maxKey)]
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
