package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"time"

	"github.com/zk-lite/zk-lite/internal/tlsfiles"
	"github.com/zk-lite/zk-lite/internal/wire"
)

// The defaults of the options, and the bounds that have none.
const (
	// DefaultSessionTimeout is what Connect asks for. The server limits it to 2
	// to 20 of its ticks.
	DefaultSessionTimeout = 10 * time.Second
	// DefaultMaxInFlight bounds the operations that wait for their answers. It
	// exceeds the 1000 at which ZooKeeper stops reading, so that the server is
	// the limit and not the client.
	DefaultMaxInFlight = 4096
	// DefaultMaxQueued bounds the bytes of the requests that wait for their
	// answers: sixteen of ZooKeeper's largest.
	DefaultMaxQueued = 16 << 20
	// DefaultMaxReply bounds a reply. ZooKeeper bounds requests (1 MiB) but not
	// replies: the list of a million children takes about this much.
	DefaultMaxReply = 16 << 20
	// DefaultBackoffMin and DefaultBackoffMax bound the pause after all servers
	// have refused.
	DefaultBackoffMin = 50 * time.Millisecond
	DefaultBackoffMax = 2 * time.Second
	// DefaultWatchQueue is how many events a persistent watch holds for a slow
	// reader; 48 bytes each.
	DefaultWatchQueue = 1024

	// minAttempt is the least time that one server gets to accept a connection,
	// however many servers share the session timeout.
	minAttempt = time.Second
	// maxCloseWait bounds how long Close waits for the server's answer.
	maxCloseWait = 3 * time.Second
)

// DialFunc opens a connection to a server, as net.Dialer.DialContext does.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// LookupFunc returns the addresses of a host, as net.Resolver.LookupHost does.
type LookupFunc func(ctx context.Context, host string) ([]string, error)

// ServiceLookupFunc returns the SRV records of a service, the first to try first, as net.Resolver.LookupSRV does.
type ServiceLookupFunc func(ctx context.Context, name string) ([]*net.SRV, error)

func lookupService(ctx context.Context, name string) ([]*net.SRV, error) {
	_, records, err := net.DefaultResolver.LookupSRV(ctx, "", "", name)
	return records, err
}

type credential struct {
	scheme string
	auth   []byte
}

type config struct {
	timeout     time.Duration
	dial        DialFunc
	lookup      LookupFunc
	lookupSRV   ServiceLookupFunc
	tls         *tls.Config
	files       *TLSFiles
	opened      *tlsfiles.Files // of files; nil: none
	logger      *slog.Logger
	maxInFlight int
	maxQueued   int
	maxRequest  int
	maxReply    int
	backoffMin  time.Duration
	backoffMax  time.Duration
	auth        []credential
	acl         []ACL
	finalExpiry bool
	background  bool
	resume      *Credentials
	seed        *[2]uint64
}

func defaultConfig() config {
	return config{
		timeout:     DefaultSessionTimeout,
		dial:        (&net.Dialer{}).DialContext,
		lookup:      net.DefaultResolver.LookupHost,
		lookupSRV:   lookupService,
		logger:      slog.New(warnings{slog.Default().Handler()}),
		acl:         OpenACL(),
		maxInFlight: DefaultMaxInFlight,
		maxQueued:   DefaultMaxQueued,
		maxRequest:  wire.DefaultMaxFrame,
		maxReply:    DefaultMaxReply,
		backoffMin:  DefaultBackoffMin,
		backoffMax:  DefaultBackoffMax,
	}
}

func (c *config) check() error {
	switch {
	case c.timeout < time.Millisecond || c.timeout.Milliseconds() > 1<<31-1:
		return fmt.Errorf("session timeout %v: want 1ms to %dms", c.timeout, 1<<31-1)
	case len(c.acl) == 0:
		return errors.New("default ACL: want at least one entry")
	case c.maxInFlight < 1:
		return fmt.Errorf("max in flight %d: want 1 or more", c.maxInFlight)
	case c.maxRequest < 1 || c.maxReply < 1:
		return fmt.Errorf("max request %d and max reply %d bytes: want 1 or more",
			c.maxRequest, c.maxReply)
	case c.backoffMin <= 0 || c.backoffMax < c.backoffMin:
		return fmt.Errorf("backoff %v to %v: want 0 < min <= max", c.backoffMin, c.backoffMax)
	case c.files == nil:
		return nil
	}
	var err error
	c.opened, err = c.files.open()
	return err
}

func (c *config) random() *rand.Rand {
	if c.seed != nil {
		return rand.New(rand.NewPCG(c.seed[0], c.seed[1]))
	}
	return rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
}

// Option changes a default of Connect.
type Option func(*config)

// WithSessionTimeout asks for a session timeout other than
// DefaultSessionTimeout. The server may clamp it; see Session.Timeout.
func WithSessionTimeout(d time.Duration) Option { return func(c *config) { c.timeout = d } }

// WithDialer makes the client open its connections with dial. TLS, if
// configured, is put on top.
func WithDialer(dial DialFunc) Option { return func(c *config) { c.dial = dial } }

// WithResolver makes the client look up host names with lookup. Hosts that are
// IP addresses are not looked up.
func WithResolver(lookup LookupFunc) Option { return func(c *config) { c.lookup = lookup } }

// WithServiceResolver makes the client look up the servers of a "dns-srv://" connect string with lookup.
func WithServiceResolver(lookup ServiceLookupFunc) Option {
	return func(c *config) { c.lookupSRV = lookup }
}

// WithTLS makes the client use TLS. If cfg names no server, the certificate
// must be for the host in the connect string.
func WithTLS(cfg *tls.Config) Option { return func(c *config) { c.tls = cfg } }

// WithLogger makes the client log connections, losses and expiries; nothing per
// operation. By default it logs warnings alone, to slog.Default: that no server can
// be reached, above all. A nil logger logs nothing.
func WithLogger(l *slog.Logger) Option {
	if l == nil {
		l = slog.New(slog.DiscardHandler)
	}
	return func(c *config) { c.logger = l }
}

// warnings is a handler that leaves out what is less than a warning.
type warnings struct{ slog.Handler }

// Enabled implements slog.Handler.
func (h warnings) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && h.Handler.Enabled(ctx, level)
}

// WithMaxInFlight bounds how many operations wait for their answers. Calls that
// submit more block.
func WithMaxInFlight(n int) Option { return func(c *config) { c.maxInFlight = n } }

// WithMaxRequest bounds a request, in bytes. The default is ZooKeeper's
// jute.maxbuffer; raise it only together with the servers'.
func WithMaxRequest(bytes int) Option { return func(c *config) { c.maxRequest = bytes } }

// WithMaxReply bounds a reply, in bytes. A longer one breaks the connection and
// fails the operation with ErrProtocol.
func WithMaxReply(bytes int) Option { return func(c *config) { c.maxReply = bytes } }

// WithBackoff bounds the pause after all servers have refused. It starts at min,
// doubles each round up to max, and is drawn at random from its upper half, so
// that clients do not come back in step.
func WithBackoff(min, max time.Duration) Option {
	return func(c *config) { c.backoffMin, c.backoffMax = min, max }
}

// WithAuth proves an identity on every connection, before anything else is
// sent. It may be given several times. AddAuth does the same later, except for
// the scheme "sasl" with "user:password", which is SASL with DIGEST-MD5: that is
// weak (RFC 6331), and only for a server that has users in a JAAS file.
func WithAuth(scheme string, auth []byte) Option {
	return func(c *config) { c.auth = append(c.auth, credential{scheme, auth}) }
}

// WithDefaultACL sets the ACL of znodes that this client creates without giving one,
// those of recipes included. The default is OpenACL: everyone may do everything.
func WithDefaultACL(acl ...ACL) Option { return func(c *config) { c.acl = acl } }

// WithFinalExpiry makes the client end with its session, as ZooKeeper's Java
// client does: every later operation fails with ErrSessionExpired. By default
// the client opens a new session.
func WithFinalExpiry() Option { return func(c *config) { c.finalExpiry = true } }

// WithBackgroundConnect makes Connect return at once. Operations wait for the
// first connection as for any other.
func WithBackgroundConnect() Option { return func(c *config) { c.background = true } }

// WithSession continues the session of another client; see Client.Credentials
// and Client.Detach. If it has expired, Connect fails with ErrSessionExpired.
func WithSession(s Credentials) Option { return func(c *config) { c.resume = &s } }

// TLSFiles are the files that a client needs for TLS: PEM, PKCS #12 or JKS. Empty names are ignored.
type TLSFiles struct {
	CA           string // authorities that must have signed servers' certificates; empty: the system's
	Certificate  string // the client's private key and certificate
	PasswordFile string // its first line is the password of both
	ServerName   string // the name in servers' certificates; empty: the host of the connect string
}

// WithTLSFiles makes the client use TLS with these files. It looks for new versions whenever it connects; files
// that it cannot use change nothing.
func WithTLSFiles(f TLSFiles) Option { return func(c *config) { c.files = &f } }

// Config returns the configuration for clients of other protocols, such as net/http's.
func (f TLSFiles) Config() (*tls.Config, error) {
	files, err := f.open()
	if err != nil {
		return nil, err
	}
	return files.Client(f.ServerName), nil
}

func (f TLSFiles) open() (*tlsfiles.Files, error) {
	c := tlsfiles.Config{
		Prefix: "tls.", Key: tlsfiles.Store{Location: f.Certificate}, Trust: tlsfiles.Store{Location: f.CA},
	}
	for _, s := range []*tlsfiles.Store{&c.Key, &c.Trust} {
		if s.Location != "" {
			s.PasswordFile = f.PasswordFile
		}
	}
	return tlsfiles.Open(c)
}

// withSeed makes the shuffling and the jitter reproducible in tests.
func withSeed(a, b uint64) Option { return func(c *config) { c.seed = &[2]uint64{a, b} } }
