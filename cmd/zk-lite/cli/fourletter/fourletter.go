// Package fourletter reads the state of servers with ZooKeeper's four-letter words srvr
// and mntr. They need no session, and servers without a leader answer them. The package
// prints nothing and starts no goroutine.
package fourletter

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Server is what a server reports about itself. Numbers that it does not report are -1.
type Server struct {
	Address string
	Err     error  // why there is no more; the server may be up and not serve
	Up      bool   // it has answered something
	Role    string // leader, follower, observer, standalone
	Version string
	Zxid    uint64
	// Latencies are in milliseconds.
	MinLatency, AvgLatency, MaxLatency float64
	Connections, Outstanding, Znodes   int64
	// From mntr, which ZooKeeper answers only if it is in the whitelist.
	Sessions, Ephemerals, Watches int64
	Bytes                         int64 // of paths and data
	Mirrors                       bool  // it mirrors a ZooKeeper ensemble
	// CertificateSeconds are left until the server's certificate expires; nil: it has none, or does not report it.
	CertificateSeconds *float64
	// PeerCertificateSeconds is the same of the certificate that it shows other servers.
	PeerCertificateSeconds *float64
}

// ErrNotServing reports that a server is up and has no leader, or is drained.
var ErrNotServing = errors.New("not serving: it has no leader, or is drained")

// Look asks all servers at once. A server that does not answer in the time of
// ctx has an Err. secure is as for Ask.
func Look(ctx context.Context, addresses []string, secure *tls.Config) []Server {
	servers := make([]Server, len(addresses))
	var wg sync.WaitGroup
	for i, address := range addresses {
		wg.Go(func() { servers[i] = look(ctx, address, secure) })
	}
	wg.Wait()
	return servers
}

func look(ctx context.Context, address string, secure *tls.Config) Server {
	s := Server{Address: address, Sessions: -1, Ephemerals: -1, Watches: -1, Bytes: -1}
	answer, err := Ask(ctx, address, "srvr", secure)
	if err != nil {
		s.Err = err
		return s
	}
	s.Up = true
	if text := refusal(answer); strings.Contains(text, "not currently serving") {
		s.Err = ErrNotServing
		return s
	} else if text != "" {
		s.Err = errors.New(text)
		return s
	}
	if s.Err = s.ParseSrvr(answer); s.Err != nil {
		return s
	}
	if answer, err := Ask(ctx, address, "mntr", secure); err == nil && refusal(answer) == "" {
		s.ParseMntr(answer)
	}
	return s
}

// ParseSrvr takes over the answer to srvr.
func (s *Server) ParseSrvr(answer string) error {
	seen := map[string]bool{}
	for line := range strings.Lines(answer) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok {
			continue
		}
		seen[key] = true
		if err := s.field(key, value); err != nil {
			return fmt.Errorf("its answer to srvr, %q: %w", strings.TrimSpace(line), err)
		}
	}
	for _, key := range []string{"Zookeeper version", "Zxid", "Mode", "Node count"} {
		if !seen[key] {
			return fmt.Errorf("it is no ZooKeeper: its answer to srvr has no %q", key)
		}
	}
	return nil
}

func (s *Server) field(key, value string) (err error) {
	switch key {
	case "Zookeeper version":
		s.Version, _, _ = strings.Cut(value, ",")
		s.Version, _, _ = strings.Cut(s.Version, "--") // the commit is of no use to a reader
		s.Version, _, _ = strings.Cut(s.Version, "+")
	case "Latency min/avg/max":
		parts := strings.Split(value, "/")
		if len(parts) != 3 {
			return errors.New("want three numbers")
		}
		for i, to := range []*float64{&s.MinLatency, &s.AvgLatency, &s.MaxLatency} {
			if *to, err = strconv.ParseFloat(parts[i], 64); err != nil {
				return err
			}
		}
	case "Connections":
		s.Connections, err = strconv.ParseInt(value, 10, 64)
	case "Outstanding":
		s.Outstanding, err = strconv.ParseInt(value, 10, 64)
	case "Zxid":
		s.Zxid, err = strconv.ParseUint(strings.TrimPrefix(value, "0x"), 16, 64)
	case "Mode":
		s.Role = value
	case "Node count":
		s.Znodes, err = strconv.ParseInt(value, 10, 64)
	}
	return err
}

// ParseMntr takes over what is known of the answer to mntr.
func (s *Server) ParseMntr(answer string) {
	for line := range strings.Lines(answer) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if f, err := strconv.ParseFloat(value, 64); err == nil {
			switch key {
			case "zk_tls_certificate_expiry_seconds":
				s.CertificateSeconds = &f
			case "zk_tls_peer_certificate_expiry_seconds":
				s.PeerCertificateSeconds = &f
			}
		}
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			continue
		}
		switch key {
		case "zk_mirror_on":
			s.Mirrors = n == 1
		case "zk_global_sessions":
			s.Sessions = n
		case "zk_ephemerals_count":
			s.Ephemerals = n
		case "zk_watch_count":
			s.Watches = n
		case "zk_approximate_data_size":
			s.Bytes = n
		}
	}
}

// epochBits is how far the epoch is shifted in a zxid: the lower half counts the
// transactions of one leader.
const epochBits = 32

// Behind is the number of transactions that another server of the list has applied and
// this one has not, if all were asked at the same moment. It is -1 if that is unknown,
// because this server is still in the epoch of another leader.
func (s *Server) Behind(all []Server) int64 {
	newest := s.Zxid
	for i := range all {
		if all[i].Err == nil {
			newest = max(newest, all[i].Zxid)
		}
	}
	if newest>>epochBits != s.Zxid>>epochBits {
		return -1
	}
	return int64(newest - s.Zxid)
}

// HasLeader reports whether one of the servers can be written to.
func HasLeader(all []Server) bool {
	for i := range all {
		if all[i].Err == nil && (all[i].Role == "leader" || all[i].Role == "standalone") {
			return true
		}
	}
	return false
}

// maxAnswer bounds an answer: the longest, that of mntr, has some kilobytes.
const maxAnswer = 1 << 20

// Ask sends a word to a server and returns its answer. secure is for a port with TLS; nil: it has none.
func Ask(ctx context.Context, address, word string, secure *tls.Config) (string, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if secure != nil {
		conn = tls.Client(conn, named(secure, address))
	}
	if _, err := io.WriteString(conn, word); err != nil {
		return "", fmt.Errorf("sending %s to %s: %w", word, address, err)
	}
	answer, err := io.ReadAll(io.LimitReader(conn, maxAnswer))
	if err != nil {
		return "", fmt.Errorf("%s does not answer %s: %w", address, word, err)
	}
	if strings.HasPrefix(string(answer), "\x15\x03") {
		return "", fmt.Errorf("%s speaks TLS: give --tls-ca, and --tls-cert if it asks for one", address)
	}
	return string(answer), nil
}

// named is the configuration for a server at an address.
func named(cfg *tls.Config, address string) *tls.Config {
	host, _, err := net.SplitHostPort(address)
	if cfg.ServerName != "" || err != nil {
		return cfg
	}
	cfg = cfg.Clone()
	cfg.ServerName = host
	return cfg
}

// refusal returns the server's text instead of an answer, or "": words must
// be in its whitelist, and most need a server that serves.
func refusal(answer string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(answer), "\n")
	if line == "" {
		return "an empty answer"
	}
	if strings.Contains(line, "not in the whitelist") || strings.Contains(line, "not currently serving") {
		return line
	}
	return ""
}
