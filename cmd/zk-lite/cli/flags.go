package cli

import (
	"bufio"
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/zk-lite/zk-lite/client"
)

// DefaultServer is the default of --server.
const DefaultServer = "127.0.0.1:2181"

// serverVariable is the environment variable that replaces DefaultServer.
const serverVariable = "ZK_LITE_SERVER"

// The flags that name servers.
const (
	serverFlag = "server"
	httpFlag   = "http"
)

// timeoutFlag is the flag for how long a command waits for a server.
const timeoutFlag = "timeout"

// defaultTimeout is its default.
const defaultTimeout = 10 * time.Second

// globals are the flags that all commands have. Each command has its own: a variable that several flags shared would
// have the default of the last.
type globals struct {
	context        string
	server         string
	http           string
	auth           []string
	passwordFile   string
	tokenFile      string
	tls            TLSFlags
	timeout        time.Duration
	sessionTimeout time.Duration
	output         output

	shell *host // nil outside
}

// host is the shell in which a command runs.
type host struct {
	client *client.Client      // which is connected already
	await  func(*client.Watch) // prints the event of a one-shot watch when it comes
}

// The groups of commands in the help.
const (
	groupServers      = "servers"
	groupData         = "data"
	groupCoordination = "coordination"
	groupOperation    = "operation"
	groupTools        = "tools"
)

// add adds commands to parent, each with flags that begin as g.
func (g *globals) add(parent *cobra.Command, group string, commands ...func(*globals) *cobra.Command) {
	for _, build := range commands {
		own := *g
		c := build(&own)
		c.GroupID = group
		parent.AddCommand(c)
	}
}

// command completes a command that talks to a server: flags, help, checks of
// the arguments.
func (g *globals) command(c *cobra.Command, run func(*cobra.Command, []string) error) *cobra.Command {
	g.bind(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := errors.Join(g.settle(c), g.check()); err != nil {
			return err
		}
		return run(c, args)
	}
	return c
}

// bind defines the flags that all commands have. In the shell the connection is
// there already.
func (g *globals) bind(c *cobra.Command) {
	f := c.Flags()
	g.output.bind(c)
	if g.shell != nil {
		return
	}
	g.bindContext(c)
	g.bindServer(c)
	f.StringArrayVar(&g.auth, "auth", nil, "prove an identity, `scheme:data`; may be repeated")
	g.bindPasswordFile(c)
	g.tls.Bind(f)
	f.DurationVar(&g.timeout, timeoutFlag, defaultTimeout, "give up when no server has been connected for so long; "+
		"it does not bound the command")
}

func (g *globals) bindServer(c *cobra.Command) {
	c.Flags().StringVar(&g.server, serverFlag, cmp.Or(os.Getenv(serverVariable), DefaultServer),
		"servers and chroot, `host:port,...[/chroot]`; one server is enough ["+serverVariable+"]")
}

// bindSession is for commands whose session means something to others.
func (g *globals) bindSession(c *cobra.Command) {
	if g.shell == nil {
		c.Flags().DurationVar(&g.sessionTimeout, "session-timeout", client.DefaultSessionTimeout,
			"silence after which the servers end this client's session")
	}
}

func (g *globals) check() error {
	if g.timeout <= 0 {
		return usagef("--timeout %v: want more than 0", g.timeout)
	}
	return g.output.check()
}

// output is the flag for the output format.
type output string

// The output formats.
const (
	outputText = "text"
	outputJSON = "json"
)

func (o *output) bind(c *cobra.Command) {
	c.Flags().StringVarP((*string)(o), "output", "o", cmp.Or(string(*o), outputText), "output format, text or json")
	err := c.RegisterFlagCompletionFunc("output",
		cobra.FixedCompletions([]string{outputText, outputJSON}, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic(fmt.Sprintf("cli: invariant broken: %v", err)) // there is no such flag
	}
}

func (o output) check() error {
	if o != outputText && o != outputJSON {
		return usagef("--output %q: want text or json", o)
	}
	return nil
}

func (o output) json() bool { return o == outputJSON }

// offline completes a command that asks no server.
func offline(c *cobra.Command, as *output, run func(*cobra.Command, []string) error) *cobra.Command {
	as.bind(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := as.check(); err != nil {
			return err
		}
		return run(c, args)
	}
	return c
}

// TLSFlags are what all commands take that connect to servers.
type TLSFlags struct {
	On    bool
	Files client.TLSFiles
}

// Bind defines the flags. Environment variables replace those that are not given.
func (t *TLSFlags) Bind(f *pflag.FlagSet) {
	on, _ := strconv.ParseBool(os.Getenv("ZK_LITE_TLS"))
	f.BoolVar(&t.On, "tls", on, "speak TLS; implied by the other flags for it [ZK_LITE_TLS]")
	for _, x := range []struct {
		to                    *string
		name, variable, usage string
	}{
		{&t.Files.CA, "tls-ca", "ZK_LITE_TLS_CA",
			"`file` with the authorities of servers' certificates; default: the system's"},
		{&t.Files.Certificate, "tls-cert", "ZK_LITE_TLS_CERT", "`file` with a private key and its certificate to show"},
		{&t.Files.PasswordFile, "tls-password-file", "ZK_LITE_TLS_PASSWORD_FILE", "`file` with the password of both"},
		{&t.Files.ServerName, "tls-server-name", "ZK_LITE_TLS_SERVER_NAME",
			"`name` that servers' certificates must have; default: as in the address"},
	} {
		f.StringVar(x.to, x.name, os.Getenv(x.variable), x.usage+" ["+x.variable+"]")
	}
}

// Wanted reports whether to use TLS for the ZooKeeper port.
func (t *TLSFlags) Wanted() bool {
	return t.On || t.Files != client.TLSFiles{}
}

// Config is for what is not package client; nil: no TLS.
func (t *TLSFlags) Config() (*tls.Config, error) {
	if !t.Wanted() {
		return nil, nil
	}
	c, err := t.Files.Config()
	if err != nil {
		return nil, Usage(err)
	}
	return c, nil
}

// passwordVariable is the environment variable that has the password which no flag gives.
const passwordVariable = "ZK_LITE_PASSWORD"

// maxPassword bounds a password, and the file that has it.
const maxPassword = 64 << 10

// bindPasswordFile defines the flag for a password that others must not see in the list of processes.
func (g *globals) bindPasswordFile(c *cobra.Command) {
	c.Flags().StringVar(&g.passwordFile, "password-file", "",
		"`file` with the password in its first line, where none is given; else "+passwordVariable+" or a prompt")
}

// credentials are those of one --auth: for digest:user and sasl:user without a password, that one is found elsewhere.
func (g *globals) credentials(text string) (scheme, data string, err error) {
	scheme, data, ok := strings.Cut(text, ":")
	if !ok || scheme == "" {
		return "", "", usagef("--auth %q: want scheme:data, as in digest:user:password", scheme)
	}
	if scheme != "digest" && scheme != "sasl" || data == "" || strings.Contains(data, ":") {
		return scheme, data, nil
	}
	password, err := g.password(data)
	return scheme, data + ":" + password, err
}

// password finds the password of a user whom a flag names without one.
func (g *globals) password(user string) (string, error) {
	if g.passwordFile != "" {
		f, err := os.Open(g.passwordFile)
		if err != nil {
			return "", usagef("--password-file: %w", err)
		}
		defer f.Close()
		return firstLine(f, "--password-file "+g.passwordFile)
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
