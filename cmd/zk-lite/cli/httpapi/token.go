package httpapi

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

const (
	// tokenHeader is where a server on this machine says which file makes its reader an administrator.
	tokenHeader = "Zk-Token-File"
	// tokenFile is the name that such a file has.
	tokenFile = "admin.token"
	// maxToken bounds what is read of it.
	maxToken = 1 << 10
)

// localToken is the token that a server on this machine asks for, if this process can read it. Whoever listens there
// chooses the file, so only one is read that says of itself that it is for this port. Without a token, an error says
// why the file is of no use; nil: none is meant.
func localToken(at string, refused *http.Response) (token string, err error) {
	path := refused.Header.Get(tokenHeader)
	u, err := url.Parse(at)
	if path == "" || err != nil || filepath.Base(path) != tokenFile {
		return "", nil
	}
	if ip := net.ParseIP(u.Hostname()); u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return "", nil
	}
	text, err := readToken(path)
	if err != nil {
		return "", fmt.Errorf("the server's token cannot be used: %w", err)
	}
	token, port, _ := strings.Cut(text, "\n")
	if strings.TrimSpace(port) != u.Port() || token == "" {
		return "", fmt.Errorf("the server's token cannot be used: %s is not for port %s", path, u.Port())
	}
	return token, nil
}

// readToken reads a file that is its owner's alone.
func readToken(path string) (string, error) {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%s is no regular file", path)
	case info.Mode().Perm()&0o077 != 0:
		return "", fmt.Errorf("%s can be read by others", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxToken))
	return string(text), err
}
