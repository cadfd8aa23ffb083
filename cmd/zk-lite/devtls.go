package main

import (
	"os"
	"path/filepath"
	"time"

	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/authority"
)

// devLife is how long the certificates of dev are good; a later run makes new ones.
const devLife = 365 * 24 * time.Hour

// file is a file of the authority of dev --tls.
func (o *devOptions) file(name string) string { return filepath.Join(o.dir, "tls", name) }

// issue makes the certificates of dev --tls: an authority once, and what it signs at each start.
func (o *devOptions) issue() error {
	if !o.tls {
		return nil
	}
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return err
	}
	dir := filepath.Dir(o.file("ca.pem"))
	ca, err := authority.Open(dir)
	if err != nil {
		if ca, err = authority.Create(dir, "zk-lite dev", 10*devLife); err != nil {
			return err
		}
	}
	if _, err := ca.Issue("server", []string{"localhost", "127.0.0.1", "::1"}, devLife, true); err != nil {
		return err
	}
	_, err = ca.Issue("client", nil, devLife, true)
	return err
}
