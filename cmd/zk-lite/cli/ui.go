package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/httpapi"
)

// openerPatience is how long the system's opener may run before the browser counts as open: some openers are the
// browser itself.
const openerPatience = 10 * time.Second

func uiCommand(g *globals) *cobra.Command {
	var plain bool
	var wait time.Duration
	c := &cobra.Command{
		Use:   "ui",
		Short: "Open the dashboard in a browser, logged in",
		Long: `Open the dashboard of the first server that answers in a browser. It is logged in by
the token of --token-file or, where no administrator is configured and the server is
on this machine, by the token in the server's data directory. The browser gets the
token from a file in the home directory that only its owner can read, and which is
removed after --wait; no other process and no log sees it.

Without a terminal, or without a browser, print the address and how to log in there.`,
		Example: `  zk-lite ui
  zk-lite ui --print`,
		Args: argCount(0, 0, 0),
	}
	c.Flags().BoolVar(&plain, "print", false, "print the address, and open nothing")
	c.Flags().DurationVar(&wait, "wait", 10*time.Second, "how long the browser has to read the file with the token")
	return g.operation(c, defaultTimeout, func(c *cobra.Command, _ []string, api *httpapi.Client) error {
		login, err := api.Login(c.Context())
		if err != nil {
			return err
		}
		login.TokenFile = cmp.Or(g.tokenFile, login.TokenFile)
		opener := browserOpener()
		if !plain && !g.output.json() && opener != nil && isTerminal(c.OutOrStdout()) {
			if err = openPage(c.Context(), opener, login, wait); err == nil {
				fmt.Fprintf(c.OutOrStdout(), "opened %s\n", login.Dashboard())
				return nil
			}
			fmt.Fprintf(c.ErrOrStderr(), "no browser: %v\n", err)
		}
		return printLogin(g, c, login)
	})
}

// printLogin says where the dashboard is, and how to log in.
func printLogin(g *globals, c *cobra.Command, login *httpapi.Login) error {
	out := c.OutOrStdout()
	if g.output.json() {
		return writeJSON(out, struct {
			URL       string `json:"url"`
			TokenFile string `json:"token_file,omitempty"`
		}{login.Dashboard(), login.TokenFile})
	}
	fmt.Fprintln(out, login.Dashboard())
	if login.TokenFile != "" {
		fmt.Fprintf(out, "log in there by token: the first line of %s\n", login.TokenFile)
	}
	if login.NoToken != nil {
		fmt.Fprintln(c.ErrOrStderr(), login.NoToken)
	}
	return nil
}

// browserOpener is the command that opens a file or an address in the user's browser; nil: there is none.
func browserOpener() []string {
	var command []string
	switch {
	case os.Getenv("BROWSER") != "":
		command = []string{os.Getenv("BROWSER")}
	case runtime.GOOS == "darwin":
		command = []string{"open"}
	case runtime.GOOS == "windows":
		command = []string{"rundll32", "url.dll,FileProtocolHandler"}
	case os.Getenv("DISPLAY") != "" || os.Getenv("WAYLAND_DISPLAY") != "":
		command = []string{"xdg-open"}
	default:
		return nil
	}
	if _, err := exec.LookPath(command[0]); err != nil {
		return nil
	}
	return command
}

// openPage opens the dashboard. A token is in a file of its own, since all users can read the arguments of processes.
func openPage(ctx context.Context, opener []string, login *httpapi.Login, wait time.Duration) (err error) {
	if login.Token == "" {
		return runOpener(ctx, opener, login.Dashboard())
	}
	// In the home directory: the sandboxes of some browsers hide temporary and hidden directories.
	home, err := os.UserHomeDir()
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(home, "zk-lite-login-*.html") // with mode 0600
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(file.Name())) }()
	_, err = file.Write(login.Page())
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = runOpener(ctx, opener, file.Name())
	}
	if err != nil {
		return err
	}
	sleep(ctx, wait)
	return nil
}

// Open shows an address in the user's browser, if there is one.
func Open(ctx context.Context, address string) {
	if opener := browserOpener(); opener != nil {
		_ = runOpener(ctx, opener, address)
	}
}

// runOpener runs the opener until it ends, or for a while if it is the browser itself.
func runOpener(ctx context.Context, opener []string, what string) error {
	cmd := exec.Command(opener[0], append(opener[1:len(opener):len(opener)], what)...)
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	patience := time.NewTimer(openerPatience)
	defer patience.Stop()
	select {
	case err := <-ended:
		if err != nil {
			return fmt.Errorf("%s: %w", opener[0], err)
		}
	case <-patience.C:
	case <-ctx.Done():
	}
	return nil
}

// sleep waits, less if ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
