package cli

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/api/body"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/backupfile"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/httpapi"
)

// restoreTimeout is how long the servers may take without a sign, as long as they allow
// themselves: they write all that differs through their log.
const restoreTimeout = 10 * time.Minute

// maxRestoreAnswer bounds what is read of the answer.
const maxRestoreAnswer = 1 << 20

// restoreOptions are the flags of restore.
type restoreOptions struct{ replace, otherEnsemble, dryRun, yes bool }

func restoreCommand(g *globals) *cobra.Command {
	var o restoreOptions
	c := &cobra.Command{
		Use:   "restore FILE",
		Short: "Bring back the state of a backup",
		Long: `Bring back the state that ` + "`zk-lite backup`" + ` has saved; - is standard input. The tree
has to be empty unless --replace is given: then what the backup does not have is
deleted, and what differs is changed. Sessions, and their ephemerals, do not come
back.

--dry-run only says how much there would be to do. On a terminal the same is shown,
and the command asks; without one it needs --yes.`,
		Example: `  zk-lite restore zk-2026-11-20.backup
  zk-lite restore --replace --dry-run zk-2026-11-20.backup
  gpg -d zk.backup.gpg | zk-lite restore --replace --yes -`,
		Args: argCount(1, 1, 0),
	}
	f := c.Flags()
	f.BoolVar(&o.replace, "replace", false, "replace what is there")
	f.BoolVar(&o.otherEnsemble, "other-ensemble", false, "also the backup of another ensemble, as after recover")
	f.BoolVar(&o.dryRun, "dry-run", false, "only say what would be done")
	f.BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	return g.operation(c, restoreTimeout, func(c *cobra.Command, args []string, api *httpapi.Client) error {
		if !o.yes && !o.dryRun && !isTerminal(c.InOrStdin()) {
			return usagef("there is no terminal to ask at: --yes restores, --dry-run says what would be done")
		}
		file, err := openBackup(c, args[0])
		if err != nil {
			return err
		}
		defer file.close()
		if !o.yes && !o.dryRun {
			if err := askToRestore(g, c, api, file, &o); err != nil {
				return err
			}
		}
		text, counts, err := restore(c, api, file, &o)
		switch {
		case err != nil:
			return err
		case g.output.json():
			_, err = fmt.Fprintln(c.OutOrStdout(), text)
			return err
		}
		verb := "restored,"
		if o.dryRun {
			verb = "nothing was done; there would be"
		}
		fmt.Fprintf(c.OutOrStdout(), "%s: %s %s (zxid %s)\n", file.name, verb, changes(counts), counts.Zxid)
		return nil
	})
}

// wholeFile is a backup that is whole, as a file.
type wholeFile struct {
	name    string // as it was given
	file    *os.File
	size    int64
	summary backupfile.Summary
	remove  bool // it was made for this
}

// openBackup opens a backup, and finds out whether it is whole before any server sees
// it. Standard input goes into a file, to be read more than once.
func openBackup(c *cobra.Command, name string) (_ *wholeFile, err error) {
	b := &wholeFile{name: name}
	if name == "-" {
		b.name, b.remove = "standard input", true
		b.file, err = os.CreateTemp("", "zk-lite-restore-*.part")
	} else {
		b.file, err = os.Open(name)
	}
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	in := io.Reader(b.file)
	if b.remove {
		in = io.TeeReader(c.InOrStdin(), b.file)
	}
	counted := &counter{r: &contextReader{c.Context(), in}}
	note := newNote(c)
	b.summary, err = backupfile.Check(counted, func() { note.show("%s read", sizeText(counted.n)) })
	note.clear()
	b.size = counted.n
	switch {
	case c.Context().Err() != nil:
		return nil, c.Context().Err()
	case err != nil:
		return nil, fmt.Errorf("%s: %w; nothing was done; `zk-lite backup verify` shows which backups can be restored",
			b.name, err)
	}
	return b, nil
}

func (b *wholeFile) close() {
	b.file.Close()
	if b.remove {
		_ = os.Remove(b.file.Name()) // it is in the directory for such things
	}
}

// content opens the backup for one more reading, and shows the progress.
func (b *wholeFile) content(note *note) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) {
		part := io.NewSectionReader(b.file, 0, b.size)
		return io.NopCloser(&teller{part, b.size, 0, note}), nil
	}
}

// teller shows how much has been read.
type teller struct {
	r    io.Reader
	size int64
	n    int64
	note *note
}

func (t *teller) Read(b []byte) (int, error) {
	n, err := t.r.Read(b)
	if t.n += int64(n); t.n < t.size {
		t.note.show("%s of %s sent", sizeText(t.n), sizeText(t.size))
	} else {
		t.note.show("%s sent, the servers are at work", sizeText(t.n))
	}
	return n, err
}

// changes are the figures of a restore in words.
func changes(n *body.Restored) string {
	text := fmt.Sprintf("%d znodes created, %d changed, %d deleted", n.Created, n.Changed, n.Deleted)
	if n.Kept+n.Skipped > 0 {
		text += fmt.Sprintf("; of the ephemerals %d kept, %d not brought back", n.Kept, n.Skipped)
	}
	return text
}

// restore sends a backup, and returns the answer as it is and as figures.
func restore(
	c *cobra.Command, api *httpapi.Client, b *wholeFile, o *restoreOptions,
) (text string, counts *body.Restored, err error) {
	target := snapshotPath
	var params []string
	if o.replace {
		params = append(params, "replace=true")
	}
	if o.otherEnsemble {
		params = append(params, "other_ensemble=true")
	}
	if o.dryRun {
		params = append(params, "dry_run=true")
	}
	if len(params) > 0 {
		target += "?" + strings.Join(params, "&")
	}
	key := "" // what changes nothing may be done twice
	if !o.dryRun {
		key = rand.Text()
	}
	note := newNote(c)
	defer note.clear()
	resp, err := api.Do(c.Context(), &httpapi.Request{
		Method: http.MethodPost, Target: target, Content: b.content(note), Size: b.size,
		Key: key, Repeatable: true,
	})
	if err != nil {
		return "", nil, restoreProblem(err, o)
	}
	defer resp.Body.Close()
	var answer bytes.Buffer
	counts = new(body.Restored)
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxRestoreAnswer))
	if err == nil {
		err = errors.Join(json.Unmarshal(raw, counts), json.Compact(&answer, raw))
	}
	if err != nil {
		return "", nil, restoreProblem(fmt.Errorf("%w: %w", httpapi.ErrUnknown, err), o)
	}
	return answer.String(), counts, nil
}

// restoreProblem returns what to do next.
func restoreProblem(err error, o *restoreOptions) error {
	var p *httpapi.Problem
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, httpapi.ErrUnknown):
		return fmt.Errorf("%w; `zk-lite restore --replace --dry-run` with the same backup shows "+
			"whether anything is still to be done", err)
	case errors.As(err, &p) && p.Status == http.StatusBadRequest: // not the user's mistake
		return errors.New(p.Detail)
	case errors.As(err, &p) && p.Status == http.StatusConflict && p.Name == "BADARGUMENTS":
		return &conflictError{p.Detail + "; if it is the right one all the same, as after zk-lite recover, " +
			"--other-ensemble restores it"}
	case errors.As(err, &p) && p.Status == http.StatusConflict && !o.replace:
		return notEmpty(p.Detail)
	}
	return err
}

func notEmpty(what string) error {
	return &conflictError{what + "; --replace restores nevertheless, --dry-run says what that would change"}
}

// askToRestore shows what would be done, and asks whether it shall be.
func askToRestore(g *globals, c *cobra.Command, api *httpapi.Client, b *wholeFile, o *restoreOptions) error {
	dry := *o
	dry.dryRun = true
	_, counts, err := restore(c, api, b, &dry)
	if err != nil {
		return err
	}
	if !o.replace && counts.Changed+counts.Deleted > 0 {
		return notEmpty(fmt.Sprintf("the tree is not empty: there would be %s; nothing was done", changes(counts)))
	}
	fmt.Fprintf(c.ErrOrStderr(), "%s: %d znodes at zxid %v, from %s\n", b.name, b.summary.Znodes,
		hexadecimal(b.summary.Zxid), b.summary.Time.Format(time.DateTime))
	fmt.Fprintf(c.ErrOrStderr(), "At %s there would be %s.\n", g.http, changes(counts))
	return askYes(c, "Restore it?")
}
