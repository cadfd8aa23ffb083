package app

import (
	"fmt"

	"github.com/zk-lite/zk-lite/app/config"
	"github.com/zk-lite/zk-lite/server/auth"
)

// authenticator knows who is who. Where the settings name no administrator, it writes the token that makes one.
func authenticator(o *Options, httpPort int) (*auth.Authenticator, error) {
	c := &o.Settings
	cfg := c.Auth
	if cfg.SkipACL {
		o.Logger.Warn("skipACL=yes: this server checks no ACLs")
	}
	var err error
	if cfg.Tokens, err = tokens(o); err != nil {
		return nil, err
	}
	if cfg.SASL, err = sasl(o); err != nil {
		return nil, err
	}
	if cfg.SASL != nil && cfg.SASL.Mechanism() == digestMD5 {
		o.Logger.Warn("SASL with DIGEST-MD5 is weak (RFC 6331), and Java clients of 3.9 need " +
			"-Dzookeeper.fips-mode=false")
	}
	if httpPort != config.NoPort && !auth.New(cfg).Configured() {
		// A full disk must not stop a start: its server is to answer again when there is room.
		if cfg.Local, err = auth.NewLocal(c.DataDir, httpPort); err != nil {
			o.Logger.Error("nobody is an administrator on the HTTP port until the next start", "error", err)
		}
	}
	return auth.New(cfg), nil
}

// tokens reads http.tokenFile; nil without one.
func tokens(o *Options) (*auth.Tokens, error) {
	if o.Settings.TokenFile == "" {
		return nil, nil
	}
	t, err := auth.OpenTokens(o.Settings.TokenFile, o.Logger)
	if err != nil {
		return nil, fmt.Errorf("http.tokenFile: %w", err)
	}
	return t, nil
}
