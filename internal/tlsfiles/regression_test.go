//go:build linux || darwin

package tlsfiles

import (
	"crypto/tls"
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/internal/testkit/certs"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

// withoutDescriptors runs f while no file can be opened.
func withoutDescriptors(t *testing.T, f func()) {
	t.Helper()
	var have syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &have); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 0, Max: have.Max}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &have); err != nil {
			t.Fatal(err)
		}
	}()
	f()
}

// A new certificate that could not be read once, as there were no descriptors, or it was another user's until chown,
// was never read again, as neither time nor size of the file had changed: the old one was in use until it had expired,
// beside a good one.
func TestRegression_Reload_AFailedReadIsTriedAgain(t *testing.T) {
	for name, path := range map[string]func(*Config) *string{
		"key store":         func(c *Config) *string { return &c.Key.Location },
		"key store's word":  func(c *Config) *string { return &c.Key.PasswordFile },
		"trust store":       func(c *Config) *string { return &c.Trust.Location },
		"trust store's":     func(c *Config) *string { return &c.Trust.PasswordFile },
		"revoked":           func(c *Config) *string { return &c.CRLs },
		"settings' prefix ": func(c *Config) *string { c.Prefix = "ssl.quorum."; return &c.Key.Location },
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			k.cfg.CRLs = certs.Write(t, k.dir+"/revoked.pem", k.ca.Revoke(t, time.Now().Add(time.Hour)))
			k.cfg.Key.PasswordFile = certs.Write(t, k.dir+"/word", []byte("word"))
			k.cfg.Trust.PasswordFile = certs.Write(t, k.dir+"/word2", []byte("word"))
			at := *path(&k.cfg)
			f := open(t, k.cfg)
			text, err := os.ReadFile(at)
			if err != nil {
				t.Fatal(err)
			}
			certs.Write(t, at+".new", text)
			if err := os.Rename(at+".new", at); err != nil {
				t.Fatal(err)
			}
			withoutDescriptors(t, func() {
				if changed, err := f.Reload(); !changed || !errors.Is(err, syscall.EMFILE) {
					t.Errorf("without descriptors: %v, %v", changed, err)
				}
				if changed, err := f.Reload(); changed || err == nil {
					t.Errorf("the same again: %v, %v", changed, err)
				}
			})
			if changed, err := f.Reload(); !changed || err != nil || f.Err() != nil {
				t.Errorf("readable again: %v, %v", changed, err)
			}
			if good, bad := f.Reloads(); good != 1 || bad != 1 {
				t.Errorf("%d reloads, %d failures", good, bad)
			}
		})
	}
}

// A change of a file's owner or mode changes nothing but its ctime.
func TestRegression_Reload_AnotherModeIsNoticed(t *testing.T) {
	k := newKit(t)
	f := open(t, k.cfg)
	wait.Until(t, "a clock of the file system that has gone on", func() bool {
		if err := os.Chmod(k.cfg.Key.Location, 0o640); err != nil {
			t.Fatal(err)
		}
		changed, err := f.Reload()
		if err != nil {
			t.Fatal(err)
		}
		return changed
	})
	if at, err := handshake(t, f.Server(tls.NoClientCert), k.as(t, nil)); at != nil {
		t.Errorf("the handshake failed, at the server: %v, at the client: %v", at, err)
	}
}
