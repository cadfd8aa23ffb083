package app

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/zk-lite/zk-lite/app/config"
	"github.com/zk-lite/zk-lite/internal/digestmd5"
	"github.com/zk-lite/zk-lite/internal/follow"
	"github.com/zk-lite/zk-lite/internal/jaas"
	"github.com/zk-lite/zk-lite/server/auth"
)

const (
	digestModule = "org.apache.zookeeper.server.auth.DigestLoginModule"
	userOption   = "user_" // user_NAME="PASSWORD"

	digestMD5 = "DIGEST-MD5"
)

// login is the section of the JAAS file.
type login struct {
	digest *digestmd5.Config
}

// begin starts an exchange by what the file says now.
func (l *login) begin() auth.Exchange { return digestmd5.New(l.digest) }

// sasl reads the JAAS file; nil without one.
func sasl(o *Options) (*auth.SASL, error) {
	c := &o.Settings.SASL
	if c.File == "" {
		return nil, nil
	}
	file, err := follow.Open("JAAS file", c.File, func(text []byte) (*login, error) { return readLogin(text, c) }, o.Logger)
	if err != nil {
		return nil, fmt.Errorf("java.security.auth.login.config: %w", err)
	}
	return &auth.SASL{
		Mechanism: digestMD5, Begin: func() auth.Exchange { return file.Get().begin() },
		Realm:      func() string { return "" },
		RemoveHost: c.RemoveHost, RemoveRealm: c.RemoveRealm, Supers: c.Supers, AllowFailed: c.AllowFailed,
	}, nil
}

// readLogin finds what is for this server in the text of a JAAS file.
func readLogin(text []byte, c *config.SASL) (*login, error) {
	sections, err := jaas.Parse(string(text))
	if err != nil {
		return nil, err
	}
	modules := sections[c.Section]
	if len(modules) != 1 {
		return nil, fmt.Errorf("it has %d modules in the section %q; want one, %s", len(modules), c.Section, digestModule)
	}
	m := modules[0]
	if m.Class != digestModule {
		return nil, fmt.Errorf("the module %s is not known; want %s", m.Class, digestModule)
	}
	d, err := digestLogin(m.Options, c)
	return &login{digest: d}, err
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
