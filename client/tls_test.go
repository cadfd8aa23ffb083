package client_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/testkit/certs"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
)

// certificate makes one for a host that signs itself.
func certificate(t *testing.T, host string) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(t, err)
	parsed, err := x509.ParseCertificate(der)
	must(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// startTLS puts TLS in front of a server, and returns the port.
func startTLS(t *testing.T, server string, cert tls.Certificate) (port string) {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}})
	must(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer in.Close()
				out, err := net.Dial("tcp", server)
				if err != nil {
					return
				}
				go func() { _, _ = io.Copy(out, in); out.Close() }()
				_, _ = io.Copy(in, out)
			}()
		}
	}()
	_, port, err = net.SplitHostPort(l.Addr().String())
	must(t, err)
	return port
}

// The certificate must match the name in the connect string, although the client
// connects to an address; the client refuses another name, or a certificate of an
// unknown authority, before it sends anything.
func TestReal_TLS_CertificateIsForTheNameOfTheHost(t *testing.T) {
	tier.Seconds(t)
	cert, pool := certificate(t, "zk.example")
	port := startTLS(t, startServer(t), cert)
	resolve := client.WithResolver(func(context.Context, string) ([]string, error) {
		return []string{"127.0.0.1"}, nil
	})
	c := connect(t, "zk.example:"+port, resolve, client.WithTLS(&tls.Config{RootCAs: pool}))
	_, _, err := c.Create(t.Context(), "/tls", nil, client.Persistent)
	must(t, err)
	for servers, cfg := range map[string]*tls.Config{
		"other.example:" + port: {RootCAs: pool},
		"zk.example:" + port:    {RootCAs: x509.NewCertPool()},
	} {
		var unfit *tls.CertificateVerificationError
		err := refused(t, servers, func(err error) bool { return errors.As(err, &unfit) }, resolve, client.WithTLS(cfg))
		if unfit == nil {
			t.Errorf("%s: %v, want an error about the certificate", servers, err)
		}
	}
}

// refused connects in vain, until the error is the one that is wanted: on a busy machine a second may end before the
// server has answered.
func refused(t *testing.T, servers string, wanted func(error) bool, opts ...client.Option) (err error) {
	t.Helper()
	for range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		_, err = client.Connect(ctx, servers, opts...)
		cancel()
		if err == nil || wanted(err) {
			break
		}
	}
	return err
}

// Files are read at the start, followed afterwards, and name themselves when they cannot be used.
func TestReal_TLSFiles(t *testing.T) {
	tier.Seconds(t)
	dir, ca := t.TempDir(), certs.Authority(t, "ca")
	server := ca.Issue(t, "server", nil)
	plain := startServer(t)
	port := startTLS(t, plain, tls.Certificate{Certificate: [][]byte{server.Cert.Raw}, PrivateKey: server.Key})
	files := client.TLSFiles{
		CA:          certs.Write(t, dir+"/ca.pem", ca.CertPEM()),
		Certificate: certs.Write(t, dir+"/client.pem", ca.Issue(t, "client", nil).KeyPEM(t)),
	}
	c := connect(t, "localhost:"+port, client.WithTLSFiles(files))
	if _, _, err := c.Create(t.Context(), "/tls-files", nil, client.Persistent); err != nil {
		t.Error(err)
	}
	if _, err := files.Config(); err != nil {
		t.Error(err)
	}
	missing := files
	missing.CA = dir + "/none"
	if _, err := client.Connect(t.Context(), "localhost:"+port, client.WithTLSFiles(missing)); err == nil ||
		!strings.Contains(err.Error(), "none") {
		t.Errorf("a file that is not there: %v", err)
	}
	for servers, want := range map[string]struct {
		opts []client.Option
		err  error
	}{
		"localhost:" + port: {nil, nil},
		plain:               {[]client.Option{client.WithTLSFiles(files)}, errPlainPort},
	} {
		wanted := func(err error) bool { return want.err == nil || errors.Is(err, want.err) }
		if err := refused(t, servers, wanted, want.opts...); err == nil || !wanted(err) {
			t.Errorf("%s: %v, want %v", servers, err, want.err)
		}
	}
}
