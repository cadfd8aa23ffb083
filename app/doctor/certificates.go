package doctor

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/zk-lite/zk-lite/app"
	"github.com/zk-lite/zk-lite/internal/tlsfiles"
)

// certificates looks at those that can be read; start has found the others.
func (d *doctor) certificates() {
	own, member := d.Settings.Own()
	if files, err := app.ClientTLS(&d.Settings); err == nil && files != nil {
		d.expiry("ssl.keyStore.location", files)
		if leaf := files.Leaf(); leaf != nil && member {
			if err := leaf.VerifyHostname(own.Host); err != nil {
				d.warn("certificates", fmt.Sprintf("ssl.keyStore.location: the certificate does not name %s, "+
					"the host of server.%d: %v", own.Host, own.ID, err),
					"issue one that names every host by which clients call this server")
			}
		}
		d.key("ssl.keyStore.location", d.Settings.TLS.Key.Location)
	}
	if files, err := app.PeerTLS(&d.Settings); err == nil && files != nil {
		d.expiry("ssl.quorum.keyStore.location", files)
		if err := files.VerifyOwn(own.Host); err != nil {
			d.fail("certificates", "another server with the same settings would refuse this one: "+err.Error(),
				"issue a certificate for "+own.Host+", for servers and clients, by an authority in "+
					"ssl.quorum.trustStore.location (zk-lite tls issue)")
		}
		d.key("ssl.quorum.keyStore.location", d.Settings.PeerTLS.Key.Location)
	}
}

func (d *doctor) expiry(setting string, files *tlsfiles.Files) {
	leaf := files.Leaf()
	if leaf == nil {
		return
	}
	const do = "issue a new one, in place: a running server follows its files"
	until := files.Expires()
	switch now := time.Now(); {
	case now.Before(leaf.NotBefore):
		d.fail("certificates", fmt.Sprintf("%s: the certificate is not good before %s", setting,
			leaf.NotBefore.UTC().Format(time.RFC3339)), "correct this machine's clock, or issue a new one")
	case now.After(until):
		d.fail("certificates", fmt.Sprintf("%s: the certificate expired at %s", setting,
			until.UTC().Format(time.RFC3339)), do)
	case until.Sub(now) < d.Limits.Expiry:
		d.warn("certificates", fmt.Sprintf("%s: the certificate expires at %s", setting,
			until.UTC().Format(time.RFC3339)), do)
	}
}

// key warns of a private key that others can read.
func (d *doctor) key(setting, path string) {
	info, err := os.Stat(path)
	if err != nil {
		if !errors.Is(err, os.ErrNotExist) {
			d.warn("modes", setting+": "+err.Error(), "let this server's user read it")
		}
		return
	}
	if info.Mode().Perm()&0o007 != 0 {
		d.warn("modes", fmt.Sprintf("%s: every user of this machine can read %s, which has a private key",
			setting, path), "chmod o= "+path)
	}
}
