package cli

import (
	"crypto/tls"
	"os"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/zk-lite/zk-lite/client"
)

// TLSFlags are what all commands take that connect to servers.
type TLSFlags struct {
	On    bool
	Files client.TLSFiles
}

// Bind defines the flags. Variables stand for those that are not given.
func (t *TLSFlags) Bind(f *pflag.FlagSet) {
	on, _ := strconv.ParseBool(os.Getenv("ZK_LITE_TLS"))
	f.BoolVar(&t.On, "tls", on, "speak TLS; implied by the other flags for it [ZK_LITE_TLS]")
	for _, x := range []struct {
		to                    *string
		name, variable, usage string
	}{
		{&t.Files.CA, "tls-ca", "ZK_LITE_TLS_CA",
			"`file` with the authorities of servers' certificates; default: the system's"},
		{&t.Files.Certificate, "tls-cert", "ZK_LITE_TLS_CERT", "`file` with a private key and its certificate to show"},
		{&t.Files.PasswordFile, "tls-password-file", "ZK_LITE_TLS_PASSWORD_FILE", "`file` with the password of both"},
		{&t.Files.ServerName, "tls-server-name", "ZK_LITE_TLS_SERVER_NAME",
			"`name` that servers' certificates must have; default: as in the address"},
	} {
		f.StringVar(x.to, x.name, os.Getenv(x.variable), x.usage+" ["+x.variable+"]")
	}
}

// Wanted reports whether the ZooKeeper port is to be spoken to with TLS.
func (t *TLSFlags) Wanted() bool {
	return t.On || t.Files != client.TLSFiles{}
}

// Config is for what is not package client; nil: no TLS.
func (t *TLSFlags) Config() (*tls.Config, error) {
	if !t.Wanted() {
		return nil, nil
	}
	c, err := t.Files.Config()
	if err != nil {
		return nil, Usage(err)
	}
	return c, nil
}
