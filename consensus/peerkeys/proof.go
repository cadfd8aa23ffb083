package peerkeys

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/tlsport"
)

// A server whose key is not bound joins with a secret that the ensemble knows, too: a one-time token, or the join
// secret of the ensemble. Both sides prove that they know it, the newcomer first, by a MAC of keying material that only
// their TLS connection has (RFC 8446, 7.5): an attacker between two connections has no proof that is valid on either,
// and the newcomer knows whom it joins. A secret must be long, because a server that answers a newcomer can try to
// guess it.

// minSecret is the minimum length of a secret, in characters.
const minSecret = 32

// tokenPrefix is the prefix of one-time tokens. A text with it is never a join secret.
const tokenPrefix = "one-time-"

// TokenTime is how long a token is valid.
const TokenTime = 24 * time.Hour

// NewToken returns a new one-time token, and its SHA-256, which the state machine keeps.
func NewToken() (secret string, sum [32]byte) {
	secret = tokenPrefix + rand.Text()
	return secret, sha256.Sum256([]byte(secret))
}

// The two sides of a proof.
const (
	newcomer = "zk-lite join, newcomer"
	member   = "zk-lite join, member"
)

// secret reads the secret's file, and returns its SHA-256. ok is false if there is no file.
func (k *Keys) secret() (sum [32]byte, token, ok bool, err error) {
	path := k.cfg.SecretFile
	if path == "" {
		return sum, false, false, nil
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return sum, false, false, nil // it may appear, or have been removed with its token
	}
	if err == nil && info.Mode().Perm()&0o027 != 0 {
		err = fmt.Errorf("its mode is %v, so others could use it: make it 0600", info.Mode().Perm())
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(path)
	}
	secret := strings.TrimSpace(string(text))
	if err == nil && len(secret) < minSecret {
		err = fmt.Errorf("it has %d characters, and could be guessed: take %d or more, such as of "+
			"`openssl rand -hex 32`", len(secret), minSecret)
	}
	if err != nil {
		return sum, false, false, fmt.Errorf("the join secret of peer.joinSecretFile, %s: %w", path, err)
	}
	return sha256.Sum256([]byte(secret)), strings.HasPrefix(secret, tokenPrefix), true, nil
}

// HasSecret reports whether this server has a secret to join with. If so, it trusts only servers that prove to know it.
func (k *Keys) HasSecret() bool {
	if k == nil {
		return false
	}
	_, _, ok, _ := k.secret()
	return ok
}

// Prove returns the proof of a newcomer on a connection, or nil without a secret or TLS. Errors: those of the secret's
// file.
func (k *Keys) Prove(c net.Conn) ([]byte, error) {
	if _, secure := k.KeyOf(c); !secure {
		return nil, nil
	}
	sum, _, ok, err := k.secret()
	if !ok {
		return nil, err
	}
	return proof(c, newcomer, sum), nil
}

// Proved reports whether the other side has answered a newcomer's proof with its own.
func (k *Keys) Proved(c net.Conn, answer []byte) bool {
	if _, secure := k.KeyOf(c); !secure || len(answer) == 0 {
		return false
	}
	sum, _, ok, _ := k.secret()
	return ok && hmac.Equal(answer, proof(c, member, sum))
}

// CheckProof checks the proof of a newcomer that wants to be the server with this id. It returns the answer, or nil if
// the proof is wrong, and the SHA-256 of the one-time token that it used up, if any.
func (k *Keys) CheckProof(c net.Conn, id state.ServerID, shown []byte) (answer []byte, used [32]byte) {
	if _, secure := k.KeyOf(c); !secure || len(shown) == 0 {
		return nil, used
	}
	sum, isToken, ok, err := k.secret()
	if err != nil {
		k.cfg.Logger.Warn("a server that wants to join is refused", "server", id, "error", err)
	}
	k.mu.Lock()
	t, has := k.tokens[id]
	fresh := !k.member
	k.mu.Unlock()
	if ok && (fresh || !isToken) && hmac.Equal(shown, proof(c, newcomer, sum)) {
		return proof(c, member, sum), used
	}
	if has && time.Now().Before(t.until) && hmac.Equal(shown, proof(c, newcomer, t.sum)) {
		return proof(c, member, t.sum), t.sum
	}
	return nil, used
}

// proof returns the MAC of one side.
func proof(c net.Conn, side string, sum [32]byte) []byte {
	s, _ := tlsport.State(c)
	bound, err := s.ExportKeyingMaterial("EXPERIMENTAL zk-lite join", nil, sha256.Size)
	if err != nil {
		panic(fmt.Sprintf("peerkeys: invariant broken: TLS 1.3 exports keys: %v", err))
	}
	mac := hmac.New(sha256.New, sum[:])
	mac.Write([]byte(side))
	mac.Write(bound)
	return mac.Sum(nil)
}
