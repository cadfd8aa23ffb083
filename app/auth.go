package app

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os/user"
	"strings"

	"github.com/zk-lite/zk-lite/app/config"
	"github.com/zk-lite/zk-lite/internal/digestmd5"
	"github.com/zk-lite/zk-lite/internal/follow"
	"github.com/zk-lite/zk-lite/internal/gssapi"
	"github.com/zk-lite/zk-lite/internal/jaas"
	"github.com/zk-lite/zk-lite/internal/kerberos"
	"github.com/zk-lite/zk-lite/server/audit"
	"github.com/zk-lite/zk-lite/server/auth"
)

// authenticator tells clients' identities. If the settings name no administrator, it writes the token that makes one.
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
			o.Logger.Error("no one is an administrator on the HTTP port until the next start", "error", err)
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

const (
	digestModule = "org.apache.zookeeper.server.auth.DigestLoginModule"
	userOption   = "user_" // user_NAME="PASSWORD"

	kerberosModule = "com.sun.security.auth.module.Krb5LoginModule"

	digestMD5 = "DIGEST-MD5"
)

// sasl reads the JAAS file; nil without one.
func sasl(o *Options) (*auth.SASL, error) {
	c := &o.Settings.SASL
	if c.File == "" {
		return nil, nil
	}
	r := &loginReader{c, o.Logger, new(kerberos.Replays)}
	file, err := follow.Open("JAAS file", c.File, r.read, o.Logger)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", config.JAASKey, err)
	}
	s := c.SASL
	s.Mechanism = func() string { return file.Get().mechanism() }
	s.Begin = func() auth.Exchange { return file.Get().begin() }
	s.Realm = func() string { return file.Get().realm() }
	return &s, nil
}

// login is a section of the JAAS file: users, or keys.
type login struct {
	digest   *digestmd5.Config                // nil: Kerberos
	kerberos *follow.File[*kerberos.Acceptor] // follows the keytab
}

// begin starts an exchange by the present state of the files.
func (l *login) begin() auth.Exchange {
	if l.digest != nil {
		return digestmd5.New(l.digest)
	}
	return gssapi.New(l.kerberos.Get())
}

func (l *login) realm() string {
	if l.digest != nil {
		return ""
	}
	return l.kerberos.Get().Realm()
}

func (l *login) mechanism() string {
	if l.digest != nil {
		return digestMD5
	}
	return "GSSAPI"
}

// loginReader reads JAAS files.
type loginReader struct {
	*config.SASL
	logger  *slog.Logger
	replays *kerberos.Replays // of all keytabs
}

// read finds this server's section in the text of a JAAS file.
func (r *loginReader) read(text []byte) (*login, error) {
	sections, err := jaas.Parse(string(text))
	if err != nil {
		return nil, err
	}
	modules := sections[r.Section]
	if len(modules) != 1 {
		return nil, fmt.Errorf("it has %d modules in the section %q; want one, %s or %s", len(modules), r.Section,
			digestModule, kerberosModule)
	}
	l := new(login)
	switch m := modules[0]; m.Class {
	case digestModule:
		l.digest, err = digestLogin(m.Options, r.SASL)
	case kerberosModule:
		l.kerberos, err = r.keytab(m.Options)
	default:
		err = fmt.Errorf("the module %s is not known; want %s or %s", m.Class, digestModule, kerberosModule)
	}
	return l, err
}

// keytab takes what Java's Krb5LoginModule needs for a server; its other options are about clients and tickets.
func (r *loginReader) keytab(options map[string]string) (*follow.File[*kerberos.Acceptor], error) {
	principal, path := options["principal"], options["keyTab"]
	if principal == "" || path == "" || options["useKeyTab"] != "true" {
		return nil, fmt.Errorf("%s needs useKeyTab=true, keyTab=\"FILE\" and principal=\"zookeeper/HOST@REALM\"",
			kerberosModule)
	}
	return follow.Open("keytab", strings.TrimPrefix(path, "file:"), func(text []byte) (*kerberos.Acceptor, error) {
		return kerberos.New(principal, text, r.replays)
	}, r.logger)
}

// digestLogin knows the users of ZooKeeper's DigestLoginModule.
func digestLogin(options map[string]string, c *config.SASL) (*digestmd5.Config, error) {
	if c.FIPS {
		return nil, errors.New("its users are for DIGEST-MD5, which fips-mode=true refuses; use Kerberos, or x509")
	}
	users := map[string]string{}
	for name, password := range options {
		if user, ok := strings.CutPrefix(name, userOption); ok {
			users[user] = password
		}
	}
	if password, ok := users["super"]; ok {
		users["super"] = cmp.Or(c.SuperPassword, password)
	}
	if len(users) == 0 {
		return nil, fmt.Errorf("the section %q has no users; want %sNAME=\"PASSWORD\"", c.Section, userOption)
	}
	// The names are those that ZooKeeper's clients have built in.
	return &digestmd5.Config{
		Service: "zookeeper", Host: "zk-sasl-md5", Realm: "zk-sasl-md5",
		Password: func(user string) (string, bool) { p, ok := users[user]; return p, ok },
	}, nil
}

// auditLog starts the audit log; nil if there is none.
func auditLog(o *Options) *audit.Log {
	if !o.Settings.AuditEnabled {
		return nil
	}
	cfg := o.Settings.Audit
	cfg.Logger = o.Logger
	l := audit.Open(cfg)
	l.Note(audit.Client{}, audit.Event{User: processUser(), Operation: "serverStart", Result: audit.Success})
	return l
}

// processUser is the name of the user whom the process runs as.
func processUser() string {
	u, err := user.Current()
	if err != nil {
		return "unknown"
	}
	return u.Username
}
