package cli

import (
	"crypto"
	_ "crypto/sha1" // the hashes that ids of scheme digest may have
	_ "crypto/sha256"
	_ "crypto/sha3"
	_ "crypto/sha512"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// digestHashes are those of DigestAuthenticationProvider.digestAlg.
var digestHashes = map[string]crypto.Hash{
	"SHA1": crypto.SHA1, "SHA-256": crypto.SHA256, "SHA-384": crypto.SHA384, "SHA-512": crypto.SHA512,
	"SHA3-256": crypto.SHA3_256, "SHA3-384": crypto.SHA3_384, "SHA3-512": crypto.SHA3_512,
}

// digestCommand asks no server.
func (a *app) digestCommand() *cobra.Command {
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
	a.bindPasswordFile(c)
	algorithm := c.Flags().String("algorithm", "SHA1", "hash, as in DigestAuthenticationProvider.digestAlg: "+names)
	c.RunE = func(c *cobra.Command, args []string) error {
		hash, ok := digestHashes[strings.ToUpper(*algorithm)]
		switch {
		case !ok:
			return usagef("--algorithm %q: want one of %s", *algorithm, names)
		case args[0] == "" || strings.Contains(args[0], ":"):
			return usagef("%q is no name of a user: it may not be empty, and has no colon", args[0])
		}
		password, err := a.password(args[0])
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
