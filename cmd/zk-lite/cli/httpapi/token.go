package httpapi

import (
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
// chooses the file, so only one is read that says of itself that it is for this port.
func localToken(at string, refused *http.Response) (token string, ok bool) {
	path := refused.Header.Get(tokenHeader)
	u, err := url.Parse(at)
	if path == "" || err != nil || filepath.Base(path) != tokenFile {
		return "", false
	}
	if ip := net.ParseIP(u.Hostname()); u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return "", false
	}
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 {
		return "", false
	}
	f, err := os.Open(path)
	if err != nil {
		return "", false
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxToken))
	if err != nil {
		return "", false
	}
	token, port, _ := strings.Cut(string(text), "\n")
	return token, strings.TrimSpace(port) == u.Port() && token != ""
}
