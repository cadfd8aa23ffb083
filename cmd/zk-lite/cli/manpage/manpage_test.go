package manpage_test

import (
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/manpage"
)

func TestPage(t *testing.T) {
	root := &cobra.Command{Use: "prog"}
	c := &cobra.Command{
		Use: "copy FROM TO", Short: "Copy it", Run: func(*cobra.Command, []string) {},
		Long: "Copy 'it'.\n\n.hidden is a name:\n  a\\b", Example: "  prog copy a b",
		DisableFlagsInUseLine: true,
	}
	c.Flags().StringP("output", "o", "text", "the `format`")
	c.Flags().Bool("secret", false, "")
	_ = c.Flags().MarkHidden("secret")
	root.AddCommand(c)
	const want = `.TH PROG\-COPY 1 "2026-11-24" "prog 1.2"
.SH NAME
prog\-copy \- Copy it
.SH SYNOPSIS
.B prog copy FROM TO
.SH DESCRIPTION
Copy \(aqit\(aq.
.PP
\&.hidden is a name:
.nf
  a\eb
.fi
.SH OPTIONS
.TP
\fB\-h\fR, \fB\-\-help\fR
help for copy
.TP
\fB\-o\fR, \fB\-\-output\fR \fIformat\fR
the format (default text)
.SH EXAMPLES
.nf
  prog copy a b
.fi
.SH SEE ALSO
.BR prog (1)
`
	got := manpage.Page(c, manpage.Source{Version: "1.2", Date: time.Date(2026, 11, 24, 23, 0, 0, 0, time.UTC)})
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
