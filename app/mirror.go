package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/zk-lite/zk-lite/app/config"
	"github.com/zk-lite/zk-lite/internal/jaas"
	"github.com/zk-lite/zk-lite/internal/tlsfiles"
	"github.com/zk-lite/zk-lite/migration/learner"
	"github.com/zk-lite/zk-lite/migration/mirror"
)

// mirroring follows a ZooKeeper ensemble in a goroutine, while this server leads and the ensemble mirrors.
type mirroring struct {
	*mirror.Mirror
	cancel context.CancelFunc
	done   chan struct{} // closed when the goroutine has ended
}

// startMirror starts the goroutine. Errors: of the files that mirror.config names.
func (s *Server) startMirror(o *Options) error {
	cfg, err := learnerConfig(&o.Settings)
	if err != nil {
		return err
	}
	cfg.Logger = o.Logger
	ctx, cancel := context.WithCancel(context.Background())
	m := &mirroring{cancel: cancel, done: make(chan struct{})}
	m.Mirror = mirror.New(mirror.LogOf(s.server), mirror.Config{
		From: o.Settings.Mirror.From, Limits: SeedLimits(*o), Logger: o.Logger,
		Learner: func(origin []string, id int64) mirror.Learner {
			c := cfg
			c.Servers, c.ID = origin, id
			return learner.New(c)
		},
	})
	s.server.Source.SetCarrier(m.Mirror)
	go func() {
		defer close(m.done)
		m.Run(ctx)
	}()
	s.mirror = m
	return nil
}

// stop ends the goroutine; ctx bounds the wait for a log that hangs.
func (m *mirroring) stop(ctx context.Context) {
	m.cancel()
	select {
	case <-m.done:
	case <-ctx.Done():
	}
}

// learnerConfig is what mirror.config says of connections to a ZooKeeper ensemble.
func learnerConfig(c *config.Settings) (cfg learner.Config, err error) {
	if c.Mirror.Config == "" {
		return cfg, nil
	}
	origin, err := config.ReadOrigin(c.Mirror.Config)
	if err != nil {
		return cfg, fmt.Errorf("mirror.config: %w", err)
	}
	if origin.TLS.Wanted {
		files, err := tlsfiles.Open(origin.TLS.Config)
		if err != nil {
			return cfg, fmt.Errorf("mirror.config: %w", err)
		}
		cfg.TLS = files.Client
	}
	if origin.SASL {
		if cfg.SASL, err = quorumLogin(&origin); err != nil {
			return cfg, fmt.Errorf("mirror.config: %s: %w", origin.JAAS, err)
		}
	}
	return cfg, nil
}

// quorumLogin reads the name and the password of a server that connects to another one.
func quorumLogin(o *config.Origin) (*learner.SASL, error) {
	text, err := os.ReadFile(o.JAAS)
	if pathErr, ok := errors.AsType[*os.PathError](err); ok {
		return nil, pathErr.Err
	}
	sections, err := jaas.Parse(string(text))
	if err != nil {
		return nil, err
	}
	modules := sections[o.Section]
	if len(modules) != 1 || modules[0].Class != digestModule {
		return nil, fmt.Errorf("want a section %s with the module %s alone: a mirror cannot prove itself by Kerberos",
			o.Section, strings.TrimPrefix(digestModule, "org.apache.zookeeper.server.auth."))
	}
	l := &learner.SASL{User: modules[0].Options["username"], Password: modules[0].Options["password"]}
	if l.User == "" || l.Password == "" {
		return nil, fmt.Errorf("section %s has no username, or no password", o.Section)
	}
	return l, nil
}
