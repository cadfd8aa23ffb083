package auth

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	// lookEvery is how often the file of tokens is looked at, while there are requests.
	lookEvery = 2 * time.Second
	// maxTokensFile bounds that file: some ten thousand tokens.
	maxTokensFile = 1 << 20
	// minTokenBytes is the shortest token: with less it could be guessed.
	minTokenBytes = 16
)

// Tokens are the bearer tokens in a file.
type Tokens struct {
	path   string
	logger *slog.Logger

	mu     sync.Mutex // protects the fields below
	names  map[[sha256.Size]byte]string
	looked time.Time
	info   os.FileInfo // when it was last looked at; nil: it was not there
}

// OpenTokens reads a file with lines NAME TOKEN, in which TOKEN may also be sha256: and the hash of it in
// hexadecimal. Empty lines, and those that begin with #, are left out.
func OpenTokens(path string, logger *slog.Logger) (*Tokens, error) {
	t := &Tokens{path: path, logger: logger, looked: time.Now()}
	var err error
	if t.info, err = os.Stat(path); err != nil {
		return nil, err
	}
	t.names, err = readTokens(path)
	return t, err
}

// find returns the name that a token stands for.
func (t *Tokens) find(token string) (name string, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := time.Now(); now.Sub(t.looked) >= lookEvery {
		t.looked = now
		t.followLocked()
	}
	name, ok = t.names[sha256.Sum256([]byte(token))]
	return name, ok
}

// followLocked reads the file again if it has changed. What cannot be used changes nothing.
func (t *Tokens) followLocked() {
	info, err := os.Stat(t.path)
	same := err != nil && t.info == nil || err == nil && t.info != nil && os.SameFile(info, t.info) &&
		info.Size() == t.info.Size() && info.ModTime().Equal(t.info.ModTime())
	if same {
		return
	}
	if t.info = info; err != nil {
		t.info = nil
	}
	names, err := readTokens(t.path)
	if err != nil {
		t.logger.Error("the new file of tokens cannot be used; the old tokens stay in use", "error", err)
		return
	}
	t.names = names
	t.logger.Info("the file of tokens has changed and is in use", "path", t.path, "tokens", len(names))
}

func readTokens(path string) (map[[sha256.Size]byte]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxTokensFile+1))
	if err == nil && len(text) > maxTokensFile {
		err = fmt.Errorf("it is larger than %d bytes", maxTokensFile)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	names := map[[sha256.Size]byte]string{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, maxTokensFile+1)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, sum, err := parseToken(line)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n, err) // without the line, which has a secret
		}
		if _, there := names[sum]; there {
			return nil, fmt.Errorf("%s:%d: this token stands in the file twice", path, n)
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
