package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/locate"
)

// contextVariable is the environment variable for --context.
const contextVariable = "ZK_LITE_CONTEXT"

// noContext is the name for none.
const noContext = "default"

const (
	maxContexts     = 200
	maxContextsFile = 1 << 20 // bytes
)

// contextFlags are the flags whose values a context has, with the environment variables that come before it.
var contextFlags = map[string]string{
	serverFlag: serverVariable, httpFlag: httpVariable, "auth": "", "password-file": "", "token-file": "",
	"tls": "ZK_LITE_TLS", "tls-ca": "ZK_LITE_TLS_CA", "tls-cert": "ZK_LITE_TLS_CERT",
	"tls-password-file": "ZK_LITE_TLS_PASSWORD_FILE", "tls-server-name": "ZK_LITE_TLS_SERVER_NAME",
}

// contextFiles are those that are names of files.
var contextFiles = []string{"password-file", "token-file", "tls-ca", "tls-cert", "tls-password-file"}

// contexts are the named ensembles of a user, each with values of contextFlags.
type contexts struct {
	Current  string                       `json:"current,omitempty"`
	Contexts map[string]map[string]string `json:"contexts"`
}

func contextsFile() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("there is no directory for the file of contexts: %w", err)
	}
	return filepath.Join(dir, "zk-lite", "contexts.json"), nil
}

// readContexts reads the file; without one there are none.
func readContexts() (*contexts, error) {
	all := &contexts{Contexts: map[string]map[string]string{}}
	name, err := contextsFile()
	if err != nil {
		return all, nil
	}
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	} else if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxContextsFile))
	if err == nil {
		err = json.Unmarshal(text, all)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w; correct it, or remove it and add the contexts again", name, err)
	}
	return all, nil
}

func (x *contexts) write() error {
	name, err := contextsFile()
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(x, "", "  ")
	if err != nil {
		return err
	}
	return locate.WriteFile(name, append(text, '\n'))
}

// find returns the values of a context.
func (x *contexts) find(name string) (map[string]string, error) {
	if values, ok := x.Contexts[name]; ok {
		return values, nil
	}
	return nil, usagef("there is no context %q; `zk-lite context ls` shows them", name)
}

// bindContext defines the flag that names a context.
func (g *globals) bindContext(c *cobra.Command) {
	c.Flags().StringVar(&g.context, "context", "", "use the servers and files of this `context` ["+contextVariable+"]")
	err := c.RegisterFlagCompletionFunc("context", completeContexts)
	if err != nil {
		panic(fmt.Sprintf("cli: invariant broken: %v", err)) // there is no such flag
	}
}

func completeContexts(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	all, err := readContexts()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return append(slices.Sorted(maps.Keys(all.Contexts)), noContext), cobra.ShellCompDirectiveNoFileComp
}

// settle completes the flags, which win over the environment, by a context. Credentials go to the servers they are
// meant for: a context counts as a whole, and not at all where servers are named beside it.
func (g *globals) settle(c *cobra.Command) error {
	if g.shell != nil {
		return nil
	}
	given := func(name string) bool { f := c.Flags().Lookup(name); return f != nil && f.Changed }
	named := given(serverFlag) || given(httpFlag)
	if given(serverFlag) && !given(httpFlag) {
		g.http = "" // that of the environment is another's
	}
	name := g.context
	switch {
	case name != "" && named:
		return usagef("--context and --%s: each names servers; give one of them", serverFlag)
	case name != "":
		g.http = ""
	case named || os.Getenv(serverVariable) != "" || os.Getenv(httpVariable) != "":
		return nil
	}
	all, err := readContexts()
	if err != nil {
		return err
	}
	for _, other := range []string{os.Getenv(contextVariable), all.Current, noContext} {
		if name == "" {
			name = other
		}
	}
	if name == noContext {
		return nil
	}
	values, err := all.find(name)
	if err != nil {
		return err
	}
	for flag, value := range values {
		f := c.Flags().Lookup(flag)
		identity := flag == "auth" || flag == "token-file"
		if f == nil || f.Changed || identity && (given("auth") || given("token-file")) ||
			g.context == "" && os.Getenv(contextFlags[flag]) != "" {
			continue
		}
		if err := f.Value.Set(value); err != nil {
			return fmt.Errorf("context %s: %s: %w", name, flag, err)
		}
	}
	return nil
}

func contextCommand(g *globals) *cobra.Command {
	c := &cobra.Command{
		Use:   "context",
		Short: "Name ensembles, and choose the one that commands ask",
		Long: `Name ensembles: their servers, the files for TLS, and who asks. Commands ask that of --context,
of ZK_LITE_CONTEXT, or the one that ` + "`zk-lite context use`" + ` has chosen. A flag, then an environment
variable, wins over a single value; where --server, --http, ZK_LITE_SERVER or ZK_LITE_HTTP names
servers, no context counts but that of --context. The file is zk-lite/contexts.json in the user's
configuration directory (~/.config); it has names of files with passwords, and no passwords.`,
		Example: `  zk-lite context add prod --server zk1.example:2281 --tls-ca ca.pem --auth digest:super
  zk-lite context use prod
  zk-lite status
  zk-lite status --context test`,
		Args: noSuchCommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	g.add(c, "", contextAddCommand, contextUseCommand, contextListCommand, contextRemoveCommand, contextShowCommand)
	return c
}

// contextName is what a context may be called.
var contextName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

func contextAddCommand(g *globals) *cobra.Command {
	c := &cobra.Command{
		Use:     "add NAME --server SERVER",
		Short:   "Name an ensemble",
		Long:    `Name an ensemble. The flags are those of the commands that ask it; one server is enough.`,
		Example: `  zk-lite context add test --server 127.0.0.1:2181`,
		Args:    argCount(1, 1, 0),
	}
	g.bindHTTP(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		name := args[0]
		all, err := readContexts()
		if err != nil {
			return err
		}
		values, err := contextValues(c, g)
		switch _, exists := all.Contexts[name]; {
		case err != nil:
			return err
		case !contextName.MatchString(name) || name == noContext:
			return usagef("%q: want letters, digits, dots and hyphens, and another name than %s", name, noContext)
		case exists:
			return &conflictError{fmt.Sprintf("there is a context %s; `zk-lite context rm %s` removes it", name, name)}
		case len(all.Contexts) >= maxContexts:
			return &conflictError{fmt.Sprintf("there are %d contexts, which is the limit", len(all.Contexts))}
		}
		all.Contexts[name] = values
		if err := all.write(); err != nil {
			return err
		}
		fmt.Fprintf(c.OutOrStdout(), "context %[1]s: use it with --context %[1]s, or `zk-lite context use %[1]s`\n",
			name)
		return nil
	}
	return c
}

// contextValues are the flags given, with absolute names of files.
func contextValues(c *cobra.Command, g *globals) (map[string]string, error) {
	if !c.Flags().Changed(serverFlag) {
		return nil, usagef("--server is missing: the address of one server")
	}
	if !strings.HasPrefix(g.server, client.ServicePrefix) {
		if _, err := addressesOf(c.Context(), g.server); err != nil {
			return nil, err
		}
	}
	values := map[string]string{}
	for flag := range contextFlags {
		if f := c.Flags().Lookup(flag); f.Changed && flag != "auth" {
			values[flag] = f.Value.String()
		}
	}
	for _, flag := range contextFiles {
		if values[flag] != "" {
			full, err := filepath.Abs(values[flag])
			if err != nil {
				return nil, err
			}
			values[flag] = full
		}
	}
	switch {
	case len(g.auth) > 1:
		return nil, usagef("--auth: a context has one identity, and %d are given", len(g.auth))
	case len(g.auth) == 1 && strings.Count(g.auth[0], ":") != 1:
		return nil, usagef("--auth: a context has no passwords: give --auth digest:USER, and --password-file")
	case len(g.auth) == 1:
		values["auth"] = g.auth[0]
	}
	return values, nil
}

func contextUseCommand(*globals) *cobra.Command {
	return &cobra.Command{
		Use:   "use NAME",
		Short: "Choose the ensemble that commands ask",
		Long: `Choose the ensemble that commands ask when they name none. The name ` + noContext + ` stands for
none: then it is ` + DefaultServer + `.`,
		Args: argCount(1, 1, 0), ValidArgsFunction: completeContexts,
		RunE: func(c *cobra.Command, args []string) error {
			all, err := readContexts()
			if err != nil {
				return err
			}
			all.Current = ""
			if args[0] != noContext {
				if _, err := all.find(args[0]); err != nil {
					return err
				}
				all.Current = args[0]
			}
			for _, variable := range []string{serverVariable, httpVariable, contextVariable} {
				if os.Getenv(variable) != "" {
					fmt.Fprintf(c.ErrOrStderr(), "%s is set and comes before it\n", variable)
				}
			}
			return all.write()
		},
	}
}

func contextListCommand(g *globals) *cobra.Command {
	c := &cobra.Command{
		Use: "ls", Aliases: []string{"list"},
		Short: "List the contexts; a star marks the one in use",
		Args:  argCount(0, 0, 0),
	}
	return offline(c, &g.output, func(c *cobra.Command, _ []string) error {
		all, err := readContexts()
		if err != nil {
			return err
		}
		w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
		for _, name := range slices.Sorted(maps.Keys(all.Contexts)) {
			mark, values := " ", all.Contexts[name]
			if name == all.Current {
				mark = "*"
			}
			if g.output.json() {
				err = writeJSON(w, contextJSON(name, name == all.Current, values))
			} else {
				_, err = fmt.Fprintf(w, "%s %s\t%s\n", mark, name, values[serverFlag])
			}
			if err != nil {
				return err
			}
		}
		return w.Flush()
	})
}

func contextJSON(name string, current bool, values map[string]string) map[string]any {
	return map[string]any{"name": name, "current": current, "values": values}
}

func contextRemoveCommand(*globals) *cobra.Command {
	return &cobra.Command{
		Use: "rm NAME", Aliases: []string{"remove"},
		Short: "Remove a context",
		Args:  argCount(1, 1, 0), ValidArgsFunction: completeContexts,
		RunE: func(_ *cobra.Command, args []string) error {
			all, err := readContexts()
			if err != nil {
				return err
			}
			if _, err := all.find(args[0]); err != nil {
				return err
			}
			delete(all.Contexts, args[0])
			if all.Current == args[0] {
				all.Current = ""
			}
			return all.write()
		},
	}
}

func contextShowCommand(g *globals) *cobra.Command {
	c := &cobra.Command{
		Use:   "show [NAME]",
		Short: "Show a context, that in use if none is named",
		Args:  argCount(0, 1, 0), ValidArgsFunction: completeContexts,
	}
	return offline(c, &g.output, func(c *cobra.Command, args []string) error {
		all, err := readContexts()
		if err != nil {
			return err
		}
		name := append(args, all.Current)[0]
		if name == "" {
			return usagef("no context is in use; `zk-lite context ls` shows them")
		}
		values, err := all.find(name)
		if err != nil {
			return err
		}
		if g.output.json() {
			return writeJSON(c.OutOrStdout(), contextJSON(name, name == all.Current, values))
		}
		for _, flag := range slices.Sorted(maps.Keys(values)) {
			fmt.Fprintf(c.OutOrStdout(), "--%s %s\n", flag, values[flag])
		}
		return nil
	})
}
