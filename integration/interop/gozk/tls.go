package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"time"
)

// tlsVariable names the directory with ca.pem and client.pem; empty: without TLS.
const tlsVariable = "ZK_LITE_INTEROP_TLS"

// dial is how this client speaks TLS: it has no other way than a dialer of one's own.
func dial(network, address string, timeout time.Duration) (net.Conn, error) {
	d := &net.Dialer{Timeout: timeout}
	dir := os.Getenv(tlsVariable)
	if dir == "" {
		return d.Dial(network, address)
	}
	ca, err := os.ReadFile(dir + "/ca.pem")
	if err != nil {
		return nil, err
	}
	cfg := &tls.Config{RootCAs: x509.NewCertPool()}
	if !cfg.RootCAs.AppendCertsFromPEM(ca) {
		return nil, errors.New("ca.pem has no certificate")
	}
	pair, err := tls.LoadX509KeyPair(dir+"/client.pem", dir+"/client.pem")
	if err != nil {
		return nil, err
	}
	cfg.Certificates = []tls.Certificate{pair}
	return tls.DialWithDialer(d, network, address, cfg)
}
