package cli

import (
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/authority"
)

const (
	day = 24 * time.Hour
	// authorityDays and certificateDays are the lives of certificates unless --days says otherwise.
	authorityDays, certificateDays = 3650, 365
)

// tlsCommand asks no server.
func tlsCommand(g *globals) *cobra.Command {
	c := &cobra.Command{
		Use:   "tls",
		Short: "Make certificates for servers and clients, by a small authority of one's own",
		Long: `Make certificates for servers and clients, by a small authority of one's own in a
directory. All files but ca.pem are readable by their owner only: copy ca.pem and
NAME.pem to where they are used, and ca-key.pem nowhere.`,
	}
	dir := c.PersistentFlags().String("dir", "tls", "`directory` of the authority")
	c.AddCommand(tlsInit(dir), tlsIssue(dir), tlsShow(dir), tlsRotate(dir))
	return c
}

// days defines the flag for the life of a certificate.
func days(c *cobra.Command, def int) func() (time.Duration, error) {
	n := c.Flags().Int("days", def, "how long it is good")
	return func() (time.Duration, error) {
		if *n < 1 || *n > 36500 {
			return 0, usagef("--days %d: want 1 to 36500", *n)
		}
		return time.Duration(*n) * day, nil
	}
}

func tlsInit(dir *string) *cobra.Command {
	c := &cobra.Command{
		Use:     "init",
		Short:   "Make an authority",
		Example: "  zk-lite tls init\n  zk-lite tls issue zk1 --host zk1.example,10.0.0.1\n  zk-lite tls issue alice",
		Args:    argCount(0, 0, 0),
	}
	name := c.Flags().String("name", "zk-lite", "name of the authority")
	life := days(c, authorityDays)
	c.RunE = func(c *cobra.Command, _ []string) error {
		d, err := life()
		if err != nil {
			return err
		}
		ca, err := authority.Create(absolute(*dir), *name, d)
		if err != nil {
			return err
		}
		fmt.Fprintf(c.OutOrStdout(), "%s: servers and clients trust this file\n", ca.CAFile())
		return nil
	}
	return c
}

func tlsIssue(dir *string) *cobra.Command {
	c := &cobra.Command{
		Use:   "issue NAME",
		Short: "Make a private key and a certificate, in the file NAME.pem",
		Long: `Make a private key and a certificate, in the file NAME.pem. With --host it is a
server's, good for these names and addresses, and for other servers to know it by.
Without, it is a client's: ACLs know it as x509:CN=NAME. With --server it is good between
servers (sslQuorum) for the server with this number only, also on a machine with several.`,
		Example: "  zk-lite tls issue zk1 --host zk1.example,10.0.0.1\n  zk-lite tls issue alice --days 90",
		Args:    argCount(1, 1, 0),
	}
	hosts := c.Flags().StringSlice("host", nil, "`names` and addresses by which clients reach the server")
	force := c.Flags().Bool("force", false, "replace a certificate of the name, with its private key")
	number := c.Flags().Int("server", noServer, "the `number` of the server, of server.N")
	life := days(c, certificateDays)
	c.RunE = func(c *cobra.Command, args []string) error {
		d, err := life()
		if err != nil {
			return err
		}
		ca, err := authority.Open(absolute(*dir))
		if err != nil {
			return err
		}
		var uris []*url.URL
		if *number != noServer {
			if _, err := parseServerID(strconv.Itoa(*number)); err != nil {
				return err
			}
			uris = []*url.URL{{Scheme: "urn", Opaque: fmt.Sprintf("zk-lite:server:%d", *number)}} // as app reads it
		}
		path, err := ca.Issue(args[0], *hosts, d, *force, uris...)
		if errors.Is(err, authority.ErrExists) {
			return fmt.Errorf("%w; `zk-lite tls show %s` shows it; --force replaces it, with its private key",
				err, path)
		}
		if err != nil {
			return err
		}
		if len(*hosts) > 0 {
			_, err = fmt.Fprintf(c.OutOrStdout(), serverSettings, path, ca.CAFile())
			return err
		}
		_, err = fmt.Fprintf(c.OutOrStdout(), "--tls-cert %s --tls-ca %s\n", path, ca.CAFile())
		return err
	}
	return c
}

// serverSettings are what zoo.cfg needs, with the paths of the key store and the trust store.
const serverSettings = `# clients at a port with TLS
secureClientPort=2281
ssl.keyStore.location=%s
ssl.trustStore.location=%s
# the HTTP port, too: admin.forceHttps=true
`

// absolute is the path from wherever it is used.
func absolute(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		return abs
	}
	return dir
}

func tlsShow(dir *string) *cobra.Command {
	return &cobra.Command{
		Use:   "show [FILE...]",
		Short: "Show certificates and how long they are good",
		Long: `Show the certificates of PEM files, by default those of the authority's directory.
The exit code is 1 if one of them has expired.`,
		Args: argCount(0, -1, 0),
		RunE: func(c *cobra.Command, files []string) error {
			if len(files) == 0 {
				if _, err := authority.Open(*dir); err != nil {
					return err
				}
				all, err := filepath.Glob(filepath.Join(*dir, "*.pem"))
				if err != nil {
					return err
				}
				for _, f := range all {
					if base := filepath.Base(f); base != "ca-key.pem" {
						files = append(files, f)
					}
				}
			}
			expired := 0
			for _, file := range files {
				all, err := authority.ReadCertificates(file)
				if err != nil {
					return err
				}
				for _, cert := range all {
					expired += showCertificate(c.OutOrStdout(), file, cert)
				}
			}
			if expired > 0 {
				return fmt.Errorf("%d certificates have expired", expired)
			}
			return nil
		},
	}
}

// showCertificate returns 1 for one that has expired.
func showCertificate(w io.Writer, file string, cert *x509.Certificate) int {
	names := cert.DNSNames
	for _, ip := range cert.IPAddresses {
		names = append(names, ip.String())
	}
	use := "client"
	switch {
	case cert.IsCA:
		use = "authority"
	case len(names) > 0:
		use = "server " + strings.Join(names, ",")
	}
	left := time.Until(cert.NotAfter)
	when := fmt.Sprintf("good for %d days", int(left/day))
	if left < 0 {
		when = "EXPIRED"
	}
	sum := sha256.Sum256(cert.Raw)
	fmt.Fprintf(w, "%s: %s, %s, %s (until %s), by %s, sha256 %s\n", file, cert.Subject, use, when,
		cert.NotAfter.UTC().Format("2006-01-02"), cert.Issuer, hex.EncodeToString(sum[:8]))
	if left < 0 {
		return 1
	}
	return 0
}

func tlsRotate(dir *string) *cobra.Command {
	c := &cobra.Command{
		Use:   "rotate",
		Short: "Replace the authority, in three steps, while servers and clients run",
		Long: `Replace the authority while servers and clients run. Servers follow their files.

  1. zk-lite tls rotate           ca.pem has the new authority beside the old one:
                                  bring it to all servers and clients
  2. zk-lite tls rotate --issue   every NAME.pem anew, by the new authority: bring
                                  each to its place
  3. zk-lite tls rotate --finish  ca.pem without the old authority: bring it to all`,
		Args: argCount(0, 0, 0),
	}
	issue := c.Flags().Bool("issue", false, "make every certificate anew")
	finish := c.Flags().Bool("finish", false, "trust old authorities no longer")
	force := c.Flags().Bool("force", false, "begin another rotation while one is under way")
	life := days(c, authorityDays)
	c.MarkFlagsMutuallyExclusive("issue", "finish")
	c.RunE = func(c *cobra.Command, _ []string) error {
		d, err := life()
		if err != nil {
			return err
		}
		ca, err := authority.Open(*dir)
		if err != nil {
			return err
		}
		w := c.OutOrStdout()
		switch {
		case *issue:
			paths, err := ca.Reissue()
			for _, path := range paths {
				fmt.Fprintf(w, "%s is new\n", path)
			}
			return err
		case *finish:
			n, err := ca.Finish()
			if err == nil {
				fmt.Fprintf(w, "%s is without %d old authorities: bring it to all servers and clients\n",
					ca.CAFile(), n)
			}
			return err
		}
		if n := len(ca.Trusted()); n > 1 && !*force {
			return fmt.Errorf("a rotation is under way, %s has %d authorities: go on with `zk-lite tls rotate "+
				"--issue`, then with --finish; --force begins another", ca.CAFile(), n)
		}
		if err := ca.Rotate(d); err != nil {
			return err
		}
		fmt.Fprintf(w, "%s has %d authorities: bring it to all servers and clients, "+
			"then `zk-lite tls rotate --issue`\n",
			ca.CAFile(), len(ca.Trusted()))
		return nil
	}
	return c
}

// digestHashes are those of DigestAuthenticationProvider.digestAlg.
var digestHashes = map[string]crypto.Hash{
	"SHA1": crypto.SHA1, "SHA-256": crypto.SHA256, "SHA-384": crypto.SHA384, "SHA-512": crypto.SHA512,
	"SHA3-256": crypto.SHA3_256, "SHA3-384": crypto.SHA3_384, "SHA3-512": crypto.SHA3_512,
}

// digestCommand asks no server.
func digestCommand(g *globals) *cobra.Command {
	names := strings.Join(slices.Sorted(maps.Keys(digestHashes)), ", ")
	c := &cobra.Command{
		Use:   "digest USER",
		Short: "Make the id of scheme digest for a user and a password, as superDigest has it",
		Long: `Print USER:HASH for a password: the value of the setting superDigest, and the id of
scheme digest in ACLs. The password comes from --password-file, from
` + passwordVariable + ` or from a prompt, and is not stored anywhere.`,
		Example: `  zk-lite digest super
  zk-lite setacl /app digest:$(zk-lite digest alice --password-file alice.txt):cdrwa`,
		Args: argCount(1, 1, 0),
	}
	g.bindPasswordFile(c)
	algorithm := c.Flags().String("algorithm", "SHA1", "hash, as in DigestAuthenticationProvider.digestAlg: "+names)
	c.RunE = func(c *cobra.Command, args []string) error {
		hash, ok := digestHashes[strings.ToUpper(*algorithm)]
		switch {
		case !ok:
			return usagef("--algorithm %q: want one of %s", *algorithm, names)
		case args[0] == "" || strings.Contains(args[0], ":"):
			return usagef("%q is no name of a user: it may not be empty, and has no colon", args[0])
		}
		password, err := g.password(args[0])
		if err != nil {
			return err
		}
		w := hash.New()
		w.Write([]byte(args[0] + ":" + password))
		_, err = fmt.Fprintf(c.OutOrStdout(), "%s:%s\n", args[0], base64.StdEncoding.EncodeToString(w.Sum(nil)))
		return err
	}
	return c
}
