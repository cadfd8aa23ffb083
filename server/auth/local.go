package auth

import (
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"os"
	"path/filepath"
)

// LocalTokenFile is the name of the file in the data directory whose reader is an administrator on this machine.
const LocalTokenFile = "admin.token"

// Local is the token that lets whoever can read the server's own files run the ensemble. It is drawn at each start.
// The file has the token in its first line and the HTTP port in its second, so that nobody who waits at another port is
// given it.
type Local struct {
	path  string
	token string
}

// NewLocal draws a token and writes it into dir, for the owner's eyes only.
func NewLocal(dir string, port int) (*Local, error) {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs // whoever asks for it is elsewhere
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
