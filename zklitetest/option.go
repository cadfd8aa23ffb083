package zklitetest

import "log/slog"

// Option changes what Start starts.
type Option func(*options)

type options struct {
	servers  int
	settings []setting
	logger   *slog.Logger
}

type setting struct{ key, value string }

// WithServers sets the number of servers; the default is one. Three tolerate the
// failure of one.
func WithServers(n int) Option { return func(o *options) { o.servers = n } }

// WithSetting gives every server a setting by its name in zoo.cfg, as in
// docs/configuration.md. It replaces the default, and what this package sets: a
// tickTime of 200 ms, sessions of at least 500 ms, any number of connections, znodes
// with a time to live, and all four-letter words. Ports and directories cannot be set.
func WithSetting(key, value string) Option {
	return func(o *options) { o.settings = append(o.settings, setting{key, value}) }
}

// WithLogger sets where the servers log; the default is nowhere. Each server adds the
// attribute server, its id.
func WithLogger(l *slog.Logger) Option { return func(o *options) { o.logger = l } }
