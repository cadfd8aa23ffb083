package consensus

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"

	"github.com/hashicorp/go-hclog"
)

// raftLogger lets hashicorp/raft, which logs through hclog, log through slog.
func raftLogger(l *slog.Logger, name string) hclog.Logger {
	return &logger{slog: l.With("subsystem", name), base: l, name: name}
}

type logger struct {
	slog, base *slog.Logger
	name       string
	args       []any
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

// expand formats the values that hclog formats late (hclog.Fmt).
func expand(args []any) []any {
	out := args
	for i, v := range args {
		f, ok := v.(hclog.Format)
		if !ok || len(f) == 0 {
			continue
		}
		if &out[0] == &args[0] {
			out = append([]any(nil), args...)
		}
		if format, ok := f[0].(string); ok {
			out[i] = fmt.Sprintf(format, f[1:]...)
		}
	}
	return out
}

func (l *logger) Log(level hclog.Level, msg string, args ...any) {
	if ctx := context.Background(); l.slog.Enabled(ctx, levelOf(level)) {
		l.slog.Log(ctx, levelOf(level), msg, expand(args)...)
	}
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
	return &logger{slog: l.base.With("subsystem", name).With(l.args...), base: l.base, name: name, args: l.args}
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
