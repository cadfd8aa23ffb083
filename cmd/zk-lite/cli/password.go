package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// passwordVariable is the environment variable that has the password which no flag gives.
const passwordVariable = "ZK_LITE_PASSWORD"

// maxPassword bounds a password, and the file that has it.
const maxPassword = 64 << 10

// bindPasswordFile defines the flag for a password that others must not see in the list of processes.
func (a *app) bindPasswordFile(c *cobra.Command) {
	c.Flags().StringVar(&a.passwordFile, "password-file", "",
		"`file` with the password in its first line, where none is given; else "+passwordVariable+" or a prompt")
}

// password finds the password of a user whom a flag names without one.
func (a *app) password(user string) (string, error) {
	if a.passwordFile != "" {
		f, err := os.Open(a.passwordFile)
		if err != nil {
			return "", usagef("--password-file: %w", err)
		}
		defer f.Close()
		return firstLine(f, "--password-file "+a.passwordFile)
	}
	if text, ok := os.LookupEnv(passwordVariable); ok {
		return text, nil
	}
	in := int(os.Stdin.Fd())
	if !term.IsTerminal(in) {
		return "", usagef("no password for %s: give --password-file, set %s, or use a terminal", user, passwordVariable)
	}
	fmt.Fprintf(os.Stderr, "password of %s: ", user)
	text, err := term.ReadPassword(in)
	fmt.Fprintln(os.Stderr)
	if err != nil {
		return "", fmt.Errorf("reading the password: %w", err)
	}
	return string(text), nil
}

// firstLine reads a secret.
func firstLine(r io.Reader, what string) (string, error) {
	line, err := bufio.NewReader(io.LimitReader(r, maxPassword)).ReadString('\n')
	line = strings.TrimRight(line, "\r\n")
	if err != nil && !errors.Is(err, io.EOF) || line == "" {
		return "", usagef("%s has no password in its first line", what)
	}
	return line, nil
}

// credentials are those of one --auth: for digest:user without a password, that one is found elsewhere.
func (a *app) credentials(text string) (scheme, data string, err error) {
	scheme, data, ok := strings.Cut(text, ":")
	if !ok || scheme == "" {
		return "", "", usagef("--auth %q: want scheme:data, as in digest:user:password", scheme)
	}
	if scheme != "digest" || data == "" || strings.Contains(data, ":") {
		return scheme, data, nil
	}
	password, err := a.password(data)
	return scheme, data + ":" + password, err
}
