package auth

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/zk-lite/zk-lite/internal/follow"
)

// minTokenBytes is the shortest token: with less it could be guessed.
const minTokenBytes = 16

// Tokens are the bearer tokens in a file.
type Tokens struct {
	names *follow.File[map[[sha256.Size]byte]string]
}

// OpenTokens reads a file with lines NAME TOKEN, in which TOKEN may also be sha256: and the hash of it in
// hexadecimal. Empty lines, and those that begin with #, are left out.
func OpenTokens(path string, logger *slog.Logger) (*Tokens, error) {
	names, err := follow.Open("file of tokens", path, parseTokens, logger)
	return &Tokens{names}, err
}

// find returns the name that belongs to a token.
func (t *Tokens) find(token string) (name string, ok bool) {
	name, ok = t.names.Get()[sha256.Sum256([]byte(token))]
	return name, ok
}

func parseTokens(text []byte) (map[[sha256.Size]byte]string, error) {
	names := map[[sha256.Size]byte]string{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, follow.MaxBytes+1)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, sum, err := parseToken(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err) // without the line, which has a secret
		}
		if _, there := names[sum]; there {
			return nil, fmt.Errorf("line %d: this token stands in the file twice", n)
		}
		names[sum] = name
	}
	return names, lines.Err()
}

func parseToken(line string) (name string, sum [sha256.Size]byte, err error) {
	fields := strings.Fields(line)
	if len(fields) != 2 {
		return "", sum, errors.New("want NAME TOKEN")
	}
	text, hashed := strings.CutPrefix(fields[1], "sha256:")
	if !hashed {
		if len(text) < minTokenBytes {
			return "", sum, fmt.Errorf("the token is shorter than %d characters", minTokenBytes)
		}
		return fields[0], sha256.Sum256([]byte(text)), nil
	}
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != sha256.Size {
		return "", sum, errors.New("want sha256: and 64 hexadecimal digits behind it")
	}
	copy(sum[:], b)
	return fields[0], sum, nil
}

// LocalTokenFile is the name of the file in the data directory with the token of Local.
const LocalTokenFile = "admin.token"

// Local is the token that makes users of this machine who can read the server's files administrators. It is drawn at
// each start. The file has the token in its first line and the HTTP port in its second, so that it is not sent to
// another process at another port.
type Local struct {
	path  string
	token string
}

// NewLocal draws a token and writes it into dir, for the owner's eyes only.
func NewLocal(dir string, port int) (*Local, error) {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs // its readers have other working directories
	}
	l := &Local{filepath.Join(dir, LocalTokenFile), rand.Text() + rand.Text()}
	f, err := os.CreateTemp(dir, LocalTokenFile+".*") // with mode 0600
	if err != nil {
		return nil, fmt.Errorf("writing the administrator's token: %w", err)
	}
	_, err = fmt.Fprintf(f, "%s\n%d\n", l.token, port)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(f.Name(), l.path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return nil, fmt.Errorf("writing the administrator's token: %w", err)
	}
	return l, nil
}

// Path is where the token is.
func (l *Local) Path() string { return l.path }

// Is reports whether token is this one.
func (l *Local) Is(token string) bool {
	return l != nil && subtle.ConstantTimeCompare([]byte(token), []byte(l.token)) == 1
}
